// What the chat does beyond htmx: keys, scrolling, focus. Each page works without it as well.

const box = () => document.getElementById("text");
const thread = document.getElementById("thread");

// Whoever reads further up is not pulled down by what is being written.
const NEAR_THE_END = 160;
let follows = true;
// What was in the box when it was sent.
let sent = "";

function toTheEnd() {
  window.scrollTo({ top: document.documentElement.scrollHeight });
}

addEventListener("scroll", () => {
  const { scrollHeight } = document.documentElement;
  follows = scrollHeight - (scrollY + innerHeight) < NEAR_THE_END;
}, { passive: true });

document.addEventListener("keydown", (event) => {
  if (event.target !== box() || event.key !== "Enter") return;
  if (event.shiftKey || event.isComposing) return;
  // Keyboards on a screen have no other way to begin a line; the button is near.
  if (matchMedia("(pointer: coarse)").matches) return;
  event.preventDefault();
  if (event.target.value.trim()) event.target.form.requestSubmit();
});

document.addEventListener("htmx:beforeRequest", (event) => {
  document.getElementById("text-error")?.replaceChildren();
  if (event.detail.elt.id === "composer") sent = box().value;
});

// What was typed while a message was on its way is the next one's beginning.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  if (event.detail.target.id !== "composer") return;
  const typed = box().value;
  const rest = typed.startsWith(sent) ? typed.slice(sent.length) : typed;
  event.detail.fragment.querySelector("textarea").value = rest;
});

document.addEventListener("htmx:sseMessage", () => {
  if (follows) toTheEnd();
});

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.requestConfig?.verb !== "post") return;
  if (event.detail.requestConfig.elt.id === "composer") {
    follows = true;
    toTheEnd();
    box()?.focus({ preventScroll: true });
  }
});

if (thread && thread.children.length && !location.hash) toTheEnd();

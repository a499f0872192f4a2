// What the chat does beyond htmx: keys, scrolling, focus. Each page works without it as well.

const box = () => document.getElementById("text");
const thread = document.getElementById("thread");

// Pixels between the top of the window and the last question.
const GAP = 16;
// Pixels. A reader who went down by more than this, to this close to the end, reads along.
const NEAR_THE_END = 160;

// What is typed stays in this browser until it is sent; not off the record.
const draft = () => {
  const name = box()?.form.dataset.draft;
  return name && `draft:${name}`;
};

function keepDraft(text) {
  if (!draft()) return;
  if (text) localStorage.setItem(draft(), text);
  else localStorage.removeItem(draft());
}

// Where the last question was put, and whether the reader has gone on to the end since.
let placed = 0;
let follows = false;
// What was in the box when it was sent.
let sent = "";

function toTheEnd() {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
}

// Shows the last question at the top of the window and its reply below. A question that would
// leave no room for the reply is shown by its end. With `room` the page is at once as long as
// that takes, so that the reply grows without moving anything.
function showLastQuestion({ room, behavior }) {
  const question = [...thread.querySelectorAll(".said-by-user")].at(-1);
  if (!question) return;
  const asked = question.getBoundingClientRect();
  const reply = (question.nextElementSibling ?? question).getBoundingClientRect();
  const start = question.nextElementSibling ? reply.top : asked.bottom;
  const above = Math.min(start - asked.top + GAP, innerHeight / 2);
  if (room) {
    const below = document.documentElement.scrollHeight - scrollY - reply.bottom;
    thread.style.setProperty("--beside-reply", `${Math.floor(above + below)}px`);
  }
  const { scrollHeight } = document.documentElement;
  placed = Math.min(scrollY + start - above, scrollHeight - innerHeight);
  follows = false;
  scrollTo({ top: placed, behavior });
}

function isCalm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// Keyboards on a screen have no other way to begin a line, and cover the reply.
function isTouched() {
  return matchMedia("(pointer: coarse)").matches;
}

addEventListener("scroll", () => {
  const { scrollHeight } = document.documentElement;
  const isNearTheEnd = scrollHeight - (scrollY + innerHeight) < NEAR_THE_END;
  follows = isNearTheEnd && scrollY > placed + NEAR_THE_END;
}, { passive: true });

document.addEventListener("keydown", (event) => {
  if (event.target !== box() || event.key !== "Enter") return;
  if (event.shiftKey || event.isComposing || isTouched()) return;
  event.preventDefault();
  if (event.target.value.trim()) event.target.form.requestSubmit();
});

document.addEventListener("htmx:beforeRequest", (event) => {
  // Not at what a page asks for by itself: the reader may not have read it yet.
  if (event.detail.elt.closest("form")) document.getElementById("text-error")?.replaceChildren();
  if (event.detail.elt.id === "composer") sent = box().value;
});

// What was typed while a message was on its way is the next one's beginning.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  if (event.detail.target.id !== "composer") return;
  const typed = box().value;
  const rest = typed.startsWith(sent) ? typed.slice(sent.length) : typed;
  event.detail.fragment.querySelector("textarea").value = rest;
  keepDraft(rest);
});

// What the reader has unfolded stays open in the markup that replaces it, and a reader who follows
// the end stays there. The swap follows this event before anything is painted.
document.addEventListener("htmx:sseBeforeMessage", (event) => {
  const unfolded = event.target.querySelectorAll("details[open] > summary[id]");
  const ids = [...unfolded].map((summary) => summary.id);
  queueMicrotask(() => {
    for (const id of ids) document.getElementById(id)?.parentElement.setAttribute("open", "");
    if (follows) toTheEnd();
  });
});

// Before the outcome of a request is painted.
document.addEventListener("htmx:afterOnLoad", (event) => {
  const { elt } = event.detail.requestConfig;
  if (event.detail.xhr.status !== 200 || !elt.matches("#composer, .retry") || !thread) return;
  showLastQuestion({ room: true, behavior: isCalm() ? "instant" : "smooth" });
});

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.requestConfig?.elt.id !== "composer") return;
  const goal = isTouched() ? document.querySelector("#composer button") : box();
  goal?.focus({ preventScroll: true });
});

if (thread && !location.hash && !document.querySelector(".talk-found")) {
  const isWriting = thread.querySelector("[aria-busy]") !== null;
  showLastQuestion({ room: isWriting, behavior: "instant" });
}

if (draft() && !box().value) box().value = localStorage.getItem(draft()) ?? "";

document.addEventListener("input", (event) => {
  if (event.target === box()) keepDraft(box().value);
});

// A new conversation's box still has its words when its page is left.
document.addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr } = event.detail;
  if (elt.id === "composer" && xhr.getResponseHeader("HX-Redirect")) keepDraft("");
});

// Text files dropped anywhere on the page go where those chosen by hand go.
addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files") && box()) event.preventDefault();
});

addEventListener("drop", (event) => {
  const input = document.getElementById("files");
  if (!event.dataTransfer.files.length || !input) return;
  event.preventDefault();
  const files = new DataTransfer();
  for (const file of [...input.files, ...event.dataTransfer.files]) files.items.add(file);
  input.files = files.files;
  nameFiles(input);
});

// The files to be sent are named where the help stands.
function nameFiles(input) {
  const said = input.form.querySelector(".attach-help");
  said.dataset.help ??= said.textContent;
  said.textContent = [...input.files].map((file) => file.name).join(", ") || said.dataset.help;
  said.classList.toggle("chosen", input.files.length > 0);
  input.form.querySelector("[data-detach]").hidden = input.files.length === 0;
}

document.addEventListener("change", (event) => {
  if (event.target.id === "files") nameFiles(event.target);
});

document.addEventListener("click", (event) => {
  const { form } = event.target.closest("[data-detach]") ?? {};
  if (!form) return;
  form.files.value = "";
  nameFiles(form.files);
  form.files.focus();
});

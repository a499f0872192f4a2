// What the pages do beyond htmx. Each works without this file as well.

const notice = document.getElementById("notice");
let timer;

function say(sentence) {
  clearTimeout(timer);
  // A page that asks every second, and gets no answer, is to be heard once.
  const isSaidAlready = notice.classList.contains("shown") && notice.textContent === sentence;
  if (!isSaidAlready) notice.textContent = sentence;
  notice.classList.add("shown");
  timer = setTimeout(() => notice.classList.remove("shown"), 6000);
}

function showCopyButtons() {
  if (!navigator.clipboard) return; // Only where the page came safely, or from this machine.
  for (const button of document.querySelectorAll("[data-copy], [data-copy-from]")) {
    button.hidden = false;
  }
}

// What was typed and not sent stays in this browser until it is sent, or its writer signs out.
document.addEventListener("submit", (event) => {
  if (!event.target.action.endsWith("/sign-out/")) return;
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith("draft:")) localStorage.removeItem(key);
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  const { copy, copyFrom, secret } = button.dataset;
  try {
    const text = copy
      ? document.getElementById(copy).textContent
      : await (await fetch(copyFrom)).text();
    await navigator.clipboard.writeText(text);
    say(copy ? `Copied ${secret ?? text}` : "Copied the message");
  } catch {
    say("The browser did not allow copying. Select it and copy it by hand.");
  }
});

// Signing in changes the token, in every tab; the cookie holds the one that counts.
document.addEventListener("htmx:configRequest", (event) => {
  const { headers, parameters } = event.detail;
  const token = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1];
  if (!token) return;
  headers["X-CSRFToken"] = token;
  if (parameters.csrfmiddlewaretoken) parameters.csrfmiddlewaretoken = token;
});

document.addEventListener("htmx:sendError", () => {
  say("The server did not answer. Check that it still runs, then try again.");
});

document.addEventListener("htmx:responseError", (event) => {
  const sentences = {
    403: "You are signed out. Sign in in another tab, then try again here.",
    404: "This is no longer here. Load the page again.",
    413: "This is too much at once. Send it in smaller parts.",
    503: "The server is busy with something else. Try again in a moment.",
  };
  say(sentences[event.detail.xhr.status] ?? "Something broke. Try again in a moment.");
});

// Focus follows what was asked for: the outcome of a search, or the first of the rows added.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.matches(".more")) {
    event.detail.target.previousElementSibling?.classList.add("grown");
  }
});

function titleOf(found) {
  document.title = found.dataset.title;
}

document.addEventListener("htmx:afterSettle", (event) => {
  showCopyButtons();
  // While one types, focus stays in the box.
  if (event.detail.elt.id === "found") titleOf(event.detail.elt);
  const asker = event.detail.requestConfig?.elt;
  if (event.detail.elt.id === "memory" && !asker?.matches(".day-choice")) {
    const goal = document.getElementById("q-error")
      ? document.getElementById("q")
      : document.getElementById("results-title");
    goal?.focus({ preventScroll: true });
    titleOf(document.getElementById("found"));
    return;
  }
  const grown = document.querySelector(".grown");
  if (grown) {
    grown.classList.remove("grown");
    grown.nextElementSibling?.querySelector("summary, a")?.focus();
  }
});

showCopyButtons();

// A row of tabs that is wider than a phone scrolls: begin at the current one.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  const row = tab.parentElement;
  row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
}

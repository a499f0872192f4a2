// The dialog that goes anywhere, and keys. All of it can be done without this file.

const dialog = document.getElementById("go-dialog");
const box = document.getElementById("go-q");
const found = document.getElementById("go-found");

function open() {
  if (dialog.open) return;
  dialog.showModal();
  box.select();
  box.form.dispatchEvent(new Event("go-open"));
}

document.getElementById("go-open").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // A new tab or window.
  event.preventDefault();
  open();
});

dialog.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
});

// Arrows walk from the box through what was found, and back.
dialog.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const stops = [box, ...found.querySelectorAll("a")];
  const step = event.key === "ArrowDown" ? 1 : -1;
  const next = stops.indexOf(document.activeElement) + step;
  event.preventDefault();
  stops.at(next % stops.length).focus();
});

box.form.addEventListener("submit", (event) => {
  const first = found.querySelector("a");
  if (!first) return; // The page itself answers.
  event.preventDefault();
  event.stopImmediatePropagation();
  location.assign(first.href);
}, true);

const places = new Map(
  [...document.querySelectorAll("[data-go]")].map((link) => [link.dataset.go, link]),
);
let isGoing = false;

function isTyping(target) {
  return target.closest("input, textarea, select, [contenteditable], dialog[open]");
}

function walk(step) {
  const rows = [...document.querySelectorAll("[data-rows] :is(a, summary):not([data-no-row])")].filter(
    (row) => row.checkVisibility(),
  );
  const active = document.activeElement;
  // From what belongs to a row, such as its menu, one goes on from that row.
  let at = rows.indexOf(active);
  if (at < 0 && active.closest("[data-rows]")) {
    at = rows.findLastIndex((row) => row.compareDocumentPosition(active) & Node.DOCUMENT_POSITION_FOLLOWING);
  }
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
  return rows.length > 0;
}

const keys = {
  "/": open,
  "?": () => location.assign("/keyboard/"),
  j: () => walk(1),
  k: () => walk(-1),
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open();
    return;
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) return;
  if (isGoing) {
    isGoing = false;
    const place = places.get(event.key);
    if (place) location.assign(place.href);
    return;
  }
  if (event.key === "g") {
    isGoing = true;
    setTimeout(() => { isGoing = false; }, 1500);
    return;
  }
  const marked = document.querySelector(`[data-page-key="${CSS.escape(event.key)}"]`);
  const act = keys[event.key] ?? (marked && (() => marked.click()));
  if (act && act() !== false) event.preventDefault();
});

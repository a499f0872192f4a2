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

// A search field empties itself at the first Escape: here that closes the dialog, as it says.
dialog.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing) return;
  event.preventDefault();
  dialog.close();
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

// The words that the list answers. Enter before their answer waits for it; a second Enter has the
// page itself answer.
let answered = null;
let isWaiting = false;

function goToFirst() {
  const first = found.querySelector("a");
  if (first) location.assign(first.href);
  return Boolean(first);
}

found.addEventListener("htmx:afterSwap", (event) => {
  answered = event.detail.requestConfig.parameters.q;
  if (isWaiting && answered === box.value) goToFirst();
});

box.addEventListener("input", () => { isWaiting = false; });

box.form.addEventListener("submit", (event) => {
  const isAnswered = answered === box.value;
  if (isAnswered ? !goToFirst() : isWaiting) return; // The page itself answers.
  isWaiting = !isAnswered;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

const places = new Map(
  [...document.querySelectorAll("[data-go]")].map((link) => [link.dataset.go, link]),
);
let isGoing = false;
let goingEnds;

// A dialog just closed may still hold the focus for a frame: what is not shown takes no letters.
function isTyping(target) {
  return target.closest(`${window.WRITING}, dialog[open]`)?.checkVisibility();
}

// A row is one stop: its first link, or what opens it.
const STOP = ":is(a, summary):not([data-no-row])";

function isStop(link) {
  const first = link.closest("li")?.querySelector(STOP) ?? link;
  return first === link && link.checkVisibility();
}

function walk(step) {
  const rows = [...document.querySelectorAll(`[data-rows] ${STOP}`)].filter(isStop);
  const active = document.activeElement;
  // From what belongs to a row, such as its menu, one goes on from that row.
  let at = rows.indexOf(active);
  if (at < 0 && active.closest("[data-rows]")) {
    at = rows.findLastIndex((row) => row.compareDocumentPosition(active) & Node.DOCUMENT_POSITION_FOLLOWING);
  }
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
  return rows.length > 0;
}

// Boxes of rows: x ticks the row of the focus, with Shift all from the last one to it.
let lastPick = null;

function showPicked() {
  const shown = document.getElementById("selected-count");
  if (!shown) return;
  const count = document.querySelectorAll(".pick:checked").length;
  shown.textContent = count ? `${count} selected` : "";
}

function pickTo(box) {
  const boxes = [...document.querySelectorAll(".pick")].filter((one) => one.checkVisibility());
  const [from, to] = [boxes.indexOf(lastPick), boxes.indexOf(box)].sort((a, b) => a - b);
  for (const one of from < 0 ? [box] : boxes.slice(from, to + 1)) one.checked = true;
}

function pick(isRange) {
  const box = document.activeElement.closest("li")?.querySelector(":scope > .pick");
  if (!box) return false;
  if (isRange) pickTo(box);
  else box.checked = !box.checked;
  lastPick = box;
  showPicked();
  return true;
}

document.addEventListener("click", (event) => {
  if (!event.target.matches?.(".pick")) return;
  if (event.shiftKey && event.target.checked) pickTo(event.target);
  lastPick = event.target;
  showPicked();
});
document.addEventListener("htmx:afterSettle", showPicked);
showPicked();

// Without a selection # and e are for the row of the focus; the page's own thing is not meant.
const ofRow = {
  "#": (row) => {
    const button = row.querySelector(":scope > .pick") && document.querySelector('[data-picked-key="#"]');
    if (!button) return false;
    pick(false);
    return button.click();
  },
  e: ({ dataset }) => Boolean(dataset.edit) && location.assign(dataset.edit),
};

function actOfRow(key) {
  const row = document.activeElement.closest("[data-rows] li") && document.activeElement.closest("li");
  return row && Object.hasOwn(ofRow, key) && (() => ofRow[key](row));
}

function marked(key) {
  const named = CSS.escape(key);
  const picked = document.querySelector(".pick:checked") && document.querySelector(`[data-picked-key="${named}"]`);
  // What was just done to one of many is taken back where the focus is.
  const row = document.activeElement.closest("article")?.querySelector(`[data-row-key="${named}"]`);
  return row || picked || document.querySelector(`[data-page-key="${named}"]`);
}

const keys = {
  x: () => pick(false),
  X: () => pick(true),
  "/": open,
  "?": () => location.assign("/keyboard/"),
  j: () => walk(1),
  k: () => walk(-1),
};

// A letter behind g goes somewhere or does nothing: it comes before what a page does with letters.
function onKeyBehindG(event) {
  if (!isGoing || event.ctrlKey || event.metaKey || event.altKey || event.key === "Shift") return;
  isGoing = false;
  if (isTyping(event.target) || event.key.length > 1) return;
  const place = places.get(event.key);
  if (place) location.assign(place.href);
  event.preventDefault();
}

function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open();
    return;
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) return;
  if (event.key === "g") {
    isGoing = true;
    clearTimeout(goingEnds);
    goingEnds = setTimeout(() => { isGoing = false; }, 1500);
    return;
  }
  const button = marked(event.key);
  const isNearer = button?.matches("[data-row-key], [data-picked-key]");
  const act = keys[event.key] ?? ((!isNearer && actOfRow(event.key)) || (button && (() => button.click())));
  if (act && act() !== false) event.preventDefault();
}

document.addEventListener("keydown", onKeyBehindG, { capture: true });
document.addEventListener("keydown", onKey);
// From here on no key is early.
document.removeEventListener("keydown", window.keepKey);
for (const event of window.earlyKeys) {
  onKeyBehindG(event);
  onKey(event);
}
if (window.earlyText !== null) {
  open();
  box.value = window.earlyText;
  // htmx listens from then on, and asks for what is in the box.
  document.addEventListener("DOMContentLoaded", () => {
    box.form.dispatchEvent(new Event("go-open"));
    if (window.earlyText.includes("\n")) box.form.requestSubmit();
  }, { once: true });
}

// What the inbox does beyond htmx. Each works without this file as well.

// Keys act only while the focus is on a proposal or on something in it; elsewhere they are letters,
// but for j and u.
const KEYS = { a: "[data-key=a]", r: "[data-key=r]", u: "[data-key=u]", x: ".choose" };

function proposals() {
  return [...document.querySelectorAll("[data-keys] .proposal")];
}

function goFrom(proposal, step) {
  const all = proposals();
  const next = all[all.indexOf(proposal) + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return Boolean(next);
}

// From outside j goes to the first proposal, but not from among other rows, and u takes back what was
// just decided of several. Not out of a dialog.
function onKeyOutside(event, target) {
  if (target.closest("dialog[open]")) return;
  const undo = event.key === "u" && !event.repeat && document.querySelector("#inbox > .message [data-key=u]");
  if (undo) undo.click();
  else if (event.key !== "j" || target.closest("[data-rows]") || !goFrom(null, 1)) return;
  event.preventDefault();
}

function onKey(event, target) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  if (target.closest(window.WRITING)) return;
  const proposal = target.closest("[data-keys] .proposal");
  if (!proposal) {
    onKeyOutside(event, target);
    return;
  }
  if (event.key === "Enter" && target.matches(".choose")) {
    // It would send the form that the box belongs to.
  } else if (event.key === "j" || event.key === "k") {
    goFrom(proposal, event.key === "j" ? 1 : -1);
  } else if (event.key === "x" && proposal.parentElement.querySelector(":scope > .pick")) {
    return; // The box of a room is like those of other rows: go.js ticks it.
  } else if (Object.hasOwn(KEYS, event.key) && !event.repeat) {
    proposal.querySelector(KEYS[event.key])?.click();
  } else {
    return;
  }
  event.preventDefault();
}

document.addEventListener("keydown", (event) => onKey(event, event.target));

// Keys that came before this file. One that was pressed where an earlier one was, before that one
// could move the focus, belongs to where the focus is now.
function onEarlyKeys() {
  let movedFrom = null;
  for (const event of window.earlyKeys) {
    const before = document.activeElement;
    onKey(event, event.target === movedFrom ? before : event.target);
    if (document.activeElement !== before) movedFrom = event.target;
  }
}

// How many are selected, and whether the button of a group selects or unselects.
function boxes(within = document) {
  return [...within.querySelectorAll(".choose")];
}

function showChosen() {
  const count = boxes().filter((box) => box.checked).length;
  const shown = document.getElementById("chosen-count");
  const sentence = count ? `${count} selected` : "";
  if (shown && shown.textContent !== sentence) shown.textContent = sentence;
  for (const form of document.querySelectorAll(".select-all")) {
    const group = boxes(form.closest(".proposal-group"));
    form.hidden = group.length === 0;
    const all = group.every((box) => box.checked);
    const which = group.length === 1 ? "this one" : `these ${group.length}`;
    form.querySelector("button").textContent = all ? `Unselect ${which}` : `Select ${which}`;
  }
}

document.addEventListener("change", (event) => {
  if (event.target.matches(".choose")) showChosen();
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest(".select-all");
  if (!form) return;
  event.preventDefault();
  const group = boxes(form.closest(".proposal-group"));
  const all = group.every((box) => box.checked);
  for (const box of group) box.checked = !all;
  showChosen();
});

// The part with the progress of a dream is replaced every second; it is announced when it changes.
function sayDream() {
  const part = document.getElementById("dream");
  const said = document.getElementById("dream-said");
  const sentence = part?.dataset.said ?? "";
  if (said && said.textContent !== sentence) said.textContent = sentence;
}

// What was decided leaves as much room as it took: what follows stays where one is about to click.
let height = 0;

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  height = detail.target.matches(".proposal-row") ? detail.target.offsetHeight : 0;
});

// Not on the row: it has an id, so htmx would copy the attribute to what replaces it.
document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (height && target.matches(".proposal-row")) {
    target.firstElementChild.style.minHeight = `${height}px`;
  }
});

document.addEventListener("htmx:afterSettle", () => {
  showChosen();
  sayDream();
  // The button that began a dream is gone with it.
  if (document.activeElement === document.body && document.querySelector("#dream progress")) {
    document.getElementById("dream-title").focus();
  }
});

const keys = document.getElementById("keys");
if (keys) keys.hidden = false;
showChosen();
onEarlyKeys();

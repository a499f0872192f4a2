// Keys that are pressed before go.js has come are kept for it. Behind one that opens its box they are
// text of the box, and act on nothing else.

window.earlyKeys = [];
window.earlyText = null;
let openedFrom = null;
// What letters are written into; go.js and inbox.js ask for it as well.
window.WRITING = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]";

function isWithModifier(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

function opensBox(event) {
  // From a field too; the browser has a box of its own for this one.
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return true;
  return event.key === "/" && !isWithModifier(event) && !event.target.closest(window.WRITING);
}

// Behind g a letter goes somewhere: what a page does with it must not come first.
function isBehindG(event) {
  const last = window.earlyKeys.at(-1);
  const [isG, isLetter] = [last?.key === "g", event.key?.length === 1];
  return isG && isLetter && ![last, event].some((key) => isWithModifier(key) || key.target.closest(window.WRITING));
}

// The text after this key; null closes the box. A break of line sends it.
function textAfter(event) {
  if (event.key === "Escape") return null;
  if (event.key === "Backspace") return window.earlyText.slice(0, -1);
  if (event.key === "Enter") return window.earlyText + "\n";
  return event.key.length === 1 ? window.earlyText + event.key : window.earlyText;
}

function take(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

function keepKey(event) {
  // Who moved the focus meanwhile no longer writes into the box.
  if (event.target !== openedFrom) window.earlyText = null;
  if (window.earlyText !== null && !isWithModifier(event)) {
    const text = textAfter(event);
    if (text !== window.earlyText) take(event);
    window.earlyText = text;
  } else if (opensBox(event)) {
    openedFrom = event.target;
    window.earlyText ??= "";
    take(event);
  } else if (event.key !== "Shift") {
    if (isBehindG(event)) event.preventDefault();
    window.earlyKeys.push(event);
  }
}

document.addEventListener("keydown", keepKey);

// Keys that are pressed before go.js has come are kept for it.

window.earlyKeys = [];

function keepKey(event) {
  window.earlyKeys.push(event);
  // The browser has a box of its own for this one.
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") event.preventDefault();
}

document.addEventListener("keydown", keepKey);

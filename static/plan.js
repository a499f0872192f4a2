// The floor plan and other pictures: arrows walk from one to the next, a link zooms into its place,
// a slider chooses the day.

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const PLACES = "[data-walk] a:has(rect)";
const DAY = 24 * 60 * 60 * 1000;

function middle(link) {
  const box = link.querySelector("rect").getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

// The nearest link in a direction; what lies beside the way counts double.
function nearest(from, [right, down]) {
  const [x, y] = middle(from);
  let best = null;
  let least = Infinity;
  for (const room of document.querySelectorAll(PLACES)) {
    const [otherX, otherY] = middle(room);
    const ahead = (otherX - x) * right + (otherY - y) * down;
    if (room === from || ahead < 8) continue;
    const aside = Math.abs((otherX - x) * down) + Math.abs((otherY - y) * right);
    if (ahead + 2 * aside < least) [best, least] = [room, ahead + 2 * aside];
  }
  return best;
}

document.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  const room = event.target.closest?.(PLACES);
  if (!step || !room || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  nearest(room, step)?.focus();
});

// From place to place only the main part is exchanged, with a View Transition out of the link.
const ZOOM = {
  target: "#main",
  select: "#main",
  selectOOB: "#rail-nav",
  swap: "outerHTML transition:true show:window:top",
};
const root = document.documentElement;
let cameFrom = "";

function isPlainClick(event) {
  return !event.button && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-zoom] a, a[data-zoom]");
  if (!link || event.defaultPrevented || !isPlainClick(event)) return;
  event.preventDefault();
  const box = link.getBoundingClientRect();
  root.style.setProperty("--zoom-x", `${box.x + box.width / 2}px`);
  root.style.setProperty("--zoom-y", `${box.y + box.height / 2}px`);
  root.dataset.way = link.closest("[data-zoom]").dataset.zoom;
  cameFrom = location.pathname;
  const { pathname, search } = new URL(link.getAttribute("href"), location);
  htmx.ajax("GET", pathname + search, { ...ZOOM, source: link, push: "true" });
});

document.addEventListener("htmx:beforeTransition", (event) => {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) event.preventDefault();
});

function doorTo(path) {
  return document.querySelector(`main a[href="${path}"]`);
}

// On the way out the focus is where one was, else before the new place.
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.elt.id !== "main") return;
  const door = root.dataset.way === "out" && doorTo(cameFrom);
  (door || detail.elt).focus({ preventScroll: true });
  sessionStorage.place = location.pathname;
});

// The browser's way back loads the page: the focus is where one was there, too.
if (performance.getEntriesByType("navigation")[0]?.type !== "navigate") {
  doorTo(sessionStorage.place)?.focus({ preventScroll: true });
}
sessionStorage.place = location.pathname;

let wasSliding = false;

document.addEventListener("htmx:beforeSwap", () => {
  wasSliding = document.activeElement.id === "day-range";
});

function show() {
  const range = document.getElementById("day-range");
  if (!range?.hidden) return;
  const day = document.getElementById("day");
  const first = Date.parse(range.dataset.first);
  range.value = day.value ? Math.round((Date.parse(day.value) - first) / DAY) : range.max;
  range.hidden = false;
  if (wasSliding) range.focus({ preventScroll: true });
  say(range, day);
  range.addEventListener("input", () => {
    day.value = new Date(first + range.value * DAY).toISOString().slice(0, 10);
    say(range, day);
  });
}

function say(range, day) {
  const options = { day: "numeric", month: "long", year: "numeric" };
  const chosen = day.value ? new Date(`${day.value}T12:00`) : null;
  range.ariaValueText = chosen ? chosen.toLocaleDateString("en-GB", options) : "Today";
}

show();
document.addEventListener("htmx:afterSettle", show);

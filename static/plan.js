// The floor plan and other pictures: arrows walk from one to the next, a slider chooses the day.

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

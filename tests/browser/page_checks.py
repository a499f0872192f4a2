"""What can be seen to be wrong with a page, by any user."""

from __future__ import annotations

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

# Of all rules only these depend on colours.
OF_COLOURS = ["color-contrast", "link-in-text-block"]
# Rules that axe leaves out unless it is asked for them.
ASKED_FOR = ["target-size", "label-content-name-mismatch"]

# Where the focus is, unless it shows: outside of the window, or without a line around it.
_HIDDEN_FOCUS = """
() => {
  const focused = document.activeElement;
  const style = getComputedStyle(focused);
  const box = focused.getBoundingClientRect();
  const inside = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0;
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  const shown = focused !== document.body && inside && outlined;
  return shown ? null : focused.outerHTML.slice(0, 200);
}
"""
# After a tab stop was reached by the keyboard, so that scripts move the focus as it does.
_HIDDEN_STOPS = """
() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
  .filter(stop => stop.checkVisibility() && !stop.disabled && stop.tabIndex >= 0)
  .filter(stop => {
    stop.focus();
    const style = getComputedStyle(stop);
    return style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1;
  })
  .map(stop => stop.outerHTML.slice(0, 200))
"""
# Every shift from now on that the reader did not cause by a key or a click a moment before. Those
# of loading are apart: a page may be painted before all of it has arrived.
WATCH_SHIFTS = """
window.shifts = [];
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) {
    if (!entry.hadRecentInput) {
      shifts.push([entry.value, entry.sources.map(s => s.node && s.node.className)]);
    }
  }
}).observe({type: "layout-shift"});
"""
# Of the window: a hundredth of what counts as good; less nobody sees.
NOTICEABLE_SHIFT = 0.001


def open_everything(page):
    """Unfold what is folded, and wait for what comes with it."""
    page.locator("main details:not([open]) > summary").evaluate_all(
        "summaries => summaries.forEach(summary => summary.click())"
    )
    page.evaluate("() => new Promise(requestAnimationFrame)")  # By then it has been asked for.
    expect(page.locator(".htmx-request")).to_have_count(0)


def has_settled(page):
    """Wait for htmx to be done with what it put in: until then it may move the focus once more."""
    expect(page.locator(".htmx-added, .htmx-settling, .htmx-swapping")).to_have_count(0)


def noticeable_shifts(page):
    """Those that were watched; none when all of them together are too small to be seen."""
    shifts = page.evaluate("shifts")
    return shifts if sum(value for value, _ in shifts) >= NOTICEABLE_SHIFT else []


def faults_in_light_and_dark(page):
    """Sentences and axe's findings; empty for a page in order."""
    page.emulate_media(color_scheme="light")
    # The first tab stop comes in sight, and covers others, only once it is reached.
    faults = [*rule_faults(page), *_frame_faults(page)]
    page.emulate_media(color_scheme="dark")
    return faults + [("dark", *found) for found in rule_faults(page, *OF_COLOURS)]


def layout_faults(page):
    if page.locator("h1").count() != 1:
        yield f"has {page.locator('h1').count()} first headings"
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        yield "scrolls sideways"


def _frame_faults(page):
    yield from layout_faults(page)
    page.keyboard.press("Tab")
    if hidden := page.evaluate(_HIDDEN_FOCUS):
        yield f"does not show the first tab stop: {hidden}"
    yield from (f"does not show the focus: {stop}" for stop in page.evaluate(_HIDDEN_STOPS))


def rule_faults(page, *rules, colours=True):
    """(rule, elements) for each fault.

    Args:
        colours: Whether to look at them too, which takes as long as all the rest.
    """
    chosen = {rule: {"enabled": True} for rule in ASKED_FOR}
    chosen |= {} if colours else {rule: {"enabled": False} for rule in OF_COLOURS}
    options = {"resultTypes": ["violations"], "rules": chosen}
    if rules:
        options["runOnly"] = list(rules)
    else:
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate("options => axe.run(document, options)", options)
    violations = found["violations"]
    return [(each["id"], [node["target"] for node in each["nodes"]]) for each in violations]

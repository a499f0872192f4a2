"""Letters as a user presses them: on a page that is there."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

# No page has more tab stops.
STOPS = 120


def press(page: Page, *keys: str) -> None:
    """Press the keys, one after the other, each once the page's scripts listen.

    A page that comes by a link or a form shows its text before its scripts have run.
    """
    for key in keys:
        page.wait_for_load_state()
        page.keyboard.press(key)


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    for _ in range(STOPS):
        if target.evaluate("target => target === document.activeElement"):
            return
        press(page, "Tab")
    expect(target).to_be_focused()

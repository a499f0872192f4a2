"""The rail, the box that goes anywhere, and keys."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from chat.models import Conversation
from tests.browser.keys import press
from tests.factories import EntityFactory, FactFactory

SCRIPTS = [True, pytest.param(False, marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("scripts", SCRIPTS)
def test_one_goes_anywhere_by_the_box(signed_in, furnished, scripts):
    page = signed_in(java_script_enabled=scripts)
    page.goto("/chat/")
    page.get_by_role("link", name="Go anywhere").click()
    box = page.get_by_role("searchbox", name="A page, a place, a name")
    box.fill("webhooks")
    if scripts:
        expect(
            page.locator("#go-found").get_by_role("link", name="Webhooks", exact=True)
        ).to_be_visible()
        box.press("Enter")
    else:
        box.press("Enter")
        page.get_by_role("link", name="Webhooks", exact=True).click()
    expect(page).to_have_url(re.compile("/settings/webhooks/$"))


def test_keys_open_the_box_walk_it_and_close_it(signed_in, furnished):
    page = signed_in()
    page.goto("/memory/")
    page.keyboard.press("Control+k")
    box = page.locator("#go-q")
    expect(box).to_be_focused()
    expect(page.locator("#go-found a").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#go-found a").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#go-dialog")).not_to_be_visible()
    page.keyboard.press("/")
    expect(box).to_be_focused()


def test_one_escape_closes_the_box_with_words_in_it(signed_in, furnished):
    page = signed_in()
    page.goto("/memory/")
    press(page, "/", "w", "Escape")
    expect(page.locator("#go-dialog")).not_to_be_visible()
    press(page, "g", "f")
    expect(page).to_have_url(re.compile("/memory/facts/$"))


def test_a_key_right_behind_the_closing_of_the_box_opens_it_again(signed_in, furnished):
    page = signed_in()
    page.goto("/memory/")
    page.keyboard.press("/")
    box = page.locator("#go-q")
    expect(box).to_be_focused()
    box.evaluate("""(box) => {
        box.closest("dialog").close();
        box.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true}));
    }""")
    expect(box).to_be_visible()
    expect(box).to_be_focused()


def test_letters_lead_to_pages_and_through_rows(signed_in, furnished):
    page = signed_in()
    page.goto("/chat/")
    page.locator("h1").click()
    press(page, "g", "p")
    expect(page).to_have_url(re.compile("/memory/$"))
    press(page, "j")
    expect(page.locator("[data-rows] a").first).to_be_focused()
    press(page, "j")
    press(page, "k")
    expect(page.locator("[data-rows] a").first).to_be_focused()
    press(page, "?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()


def without_go_js(page, address):
    """Open the page and have it wait for go.js; calling the result lets the script come."""
    held = []
    page.route(re.compile(r"/go\.js"), lambda route: held.append(route))
    page.goto(address, wait_until="commit")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return lambda: held[0].continue_()


def test_keys_pressed_before_the_scripts_have_come_are_not_lost(signed_in, furnished):
    page = signed_in()
    let_come = without_go_js(page, "/chat/")
    page.locator("h1").click()  # Away from the message box.
    for key in ("/", "p", "Escape", "g", "p"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile("/chat/$"))
    let_come()
    expect(page).to_have_url(re.compile("/memory/$"))
    expect(page.locator("#go-dialog")).not_to_be_visible()


def test_letters_behind_an_early_key_are_text_of_the_box(signed_in, furnished):
    page = signed_in()
    fact = FactFactory(subject=EntityFactory(palace=furnished))
    let_come = without_go_js(page, fact.get_absolute_url())
    expect(page.get_by_role("link", name="Edit", exact=True)).to_be_attached()
    for key in ("Control+k", *"elf", *["Backspace"] * 3, *"webhooks"):
        page.keyboard.press(key)
    let_come()
    expect(page.locator("#go-q")).to_be_focused()
    expect(page.locator("#go-q")).to_have_value("webhooks")
    expect(page.locator("#go-found a", has_text="Webhooks").first).to_be_visible()
    expect(page.locator("[data-page-key=e]")).not_to_have_attribute("aria-current", "true")


def test_an_early_search_from_the_message_box_is_sent_and_leaves_the_message(signed_in, furnished):
    page = signed_in()
    let_come = without_go_js(page, "/chat/")
    message = page.locator("#text")
    message.press_sequentially("a/b")
    for key in ("Control+k", *"webhooks", "Enter"):
        page.keyboard.press(key)
    expect(message).to_have_value("a/b")
    let_come()
    expect(page).to_have_url(re.compile("/settings/webhooks/$"))


def test_in_a_field_keys_are_letters(signed_in, furnished):
    page = signed_in()
    page.goto("/memory/")
    page.get_by_role("searchbox", name="Search your memory").press_sequentially("g/p?")
    expect(page.get_by_role("searchbox", name="Search your memory")).to_have_value("g/p?")
    expect(page).to_have_url(re.compile("/memory/$"))


def test_on_a_phone_the_pages_are_at_the_bottom(signed_in, furnished):
    page = signed_in(viewport={"width": 390, "height": 844})
    page.goto("/memory/")
    box = page.get_by_role("navigation", name="Main").bounding_box()
    assert box["y"] + box["height"] == pytest.approx(844, abs=1)
    page.locator(".account-menu summary").click()
    page.get_by_role("link", name="Trash").click()
    expect(page.get_by_role("heading", name="Trash")).to_be_visible()
    talk = Conversation.objects.create(palace=furnished, title="Wires", spoke_at=timezone.now())
    page.goto(talk.get_absolute_url())
    composer = (
        page.get_by_role("button", name="Send").locator("xpath=ancestor::form").bounding_box()
    )
    assert composer["y"] + composer["height"] <= box["y"] + 1

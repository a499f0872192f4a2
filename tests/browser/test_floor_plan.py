"""The floor plan in a browser: arrows walk, a slider chooses the day."""

from __future__ import annotations

import re

from playwright.sync_api import expect


def focused(page):
    return page.evaluate("document.activeElement.querySelector('title')?.textContent ?? ''")


def test_arrows_walk_from_room_to_room_and_enter_goes_in(signed_in, furnished):
    page = signed_in()
    page.goto("/memory/")
    rooms = page.locator(".plan-room")
    first = rooms.first
    first.focus()
    start = focused(page)
    assert start
    for key, back in (("ArrowRight", "ArrowLeft"), ("ArrowDown", "ArrowUp")):
        page.keyboard.press(key)
        if focused(page) == start:
            continue  # The last one in this direction.
        page.keyboard.press(back)
        assert focused(page) == start
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(start.split(", ")[0])


def test_the_slider_chooses_the_day_and_keeps_the_focus(signed_in, furnished):
    page = signed_in()
    page.goto("/memory/")
    slider = page.get_by_role("slider", name="Day")
    slider.focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile("day="))
    expect(page.locator("#plan-known-title")).to_contain_text("What had been said by")
    expect(page.get_by_role("slider", name="Day")).to_be_focused()
    assert page.get_by_role("slider", name="Day").input_value() == "0"
    page.get_by_label("True then").check()
    expect(page.locator("#plan-known-title")).to_contain_text("What was so on")
    page.get_by_role("link", name="Today").click()
    expect(page.locator("#plan-known-title")).to_have_count(0)


def test_without_scripts_a_day_is_chosen_with_a_button(signed_in, furnished):
    page = signed_in(java_script_enabled=False)
    page.goto("/memory/")
    expect(page.locator("#day-range")).to_be_hidden()
    page.get_by_label("On", exact=True).fill("2025-06-01")
    page.get_by_role("button", name="Show that day").click()
    expect(page.locator("#plan-known-title")).to_be_visible()


def test_a_word_is_explained_without_scripts(signed_in, furnished):
    page = signed_in(java_script_enabled=False)
    page.goto("/memory/")
    page.locator(".plan-name a").first.click()
    page.get_by_role("button", name="What is a wing?").click()
    expect(page.get_by_text("A wing holds all conversations about")).to_be_visible()


def test_pages_fade_into_each_other_from_the_palace_to_a_drawer(signed_in, furnished):
    page = signed_in(reduced_motion="no-preference")
    page.goto("/memory/")
    page.locator(".plan-name a").first.click()
    expect(page.get_by_text("Wing, topic")).to_be_visible()
    page.locator(".plan-room").first.click()
    expect(page.get_by_text("Room", exact=True)).to_be_visible()
    page.locator(".shelf a").first.click()
    expect(page.locator("#text")).to_be_visible()

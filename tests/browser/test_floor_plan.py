"""The floor plan in a browser: arrows walk, a slider chooses the day."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from palace.curation.wings import change_wing
from palace.models import Wing
from tests.browser.page_checks import WATCH_SHIFTS, has_settled, layout_faults, noticeable_shifts


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


def test_the_hall_of_a_wing_ends_where_its_rooms_do(signed_in, furnished):
    wing = Wing.objects.within(furnished).exclude(number=Wing.UNSORTED).first()
    page = signed_in(at=wing.get_absolute_url(), viewport={"width": 1440, "height": 900})
    hall, rooms = (page.locator(each).bounding_box() for each in (".plan-wing", ".plan-floor"))
    # One room alone has a hall of nine rem.
    assert 0 < rooms["width"] < hall["width"] < max(rooms["width"] + 50, 150)


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
    expect(page.locator("#plan-known-title")).to_contain_text("What was true on")
    page.get_by_role("link", name="Today").click()
    expect(page.locator("#plan-known-title")).to_have_count(0)


@pytest.mark.exhaustive
def test_without_scripts_a_day_is_chosen_with_a_button(signed_in, furnished):
    page = signed_in(java_script_enabled=False)
    page.goto("/memory/")
    expect(page.locator("#day-range")).to_be_hidden()
    page.get_by_label("On", exact=True).fill("2025-06-01")
    page.get_by_role("button", name="Show that day").click()
    expect(page.locator("#plan-known-title")).to_be_visible()


@pytest.mark.exhaustive
def test_a_word_is_explained_without_scripts(signed_in, furnished):
    page = signed_in(java_script_enabled=False)
    page.goto("/memory/")
    page.locator(".plan-name a").first.click()
    page.get_by_role("button", name="What is a wing?").click()
    expect(page.get_by_text("A wing holds all conversations about")).to_be_visible()


# What a page was asked to fade, and whether it is still the same page.
WATCH_FADES = """
window.sameDocument = true;
window.fades = 0;
const start = document.startViewTransition.bind(document);
document.startViewTransition = (change) => { window.fades += 1; return start(change); };
null;
"""


def zoom_to_a_drawer(page):
    """From the palace through a wing and a room; the address of each is its own."""
    steps = ((".plan-name a", "Wing, topic"), (".plan-room", "Room"), (".shelf a", "Drawer"))
    for link, word in steps:
        address = page.locator(link).first.get_attribute("href")
        page.locator(link).first.click()
        expect(page.locator(".eyebrow").get_by_text(word, exact=True)).to_be_visible()
        expect(page).to_have_url(re.compile(f"{address}$"))
    has_settled(page)


def test_one_zooms_from_the_palace_to_a_drawer_and_out_again(signed_in, furnished):
    page = signed_in(reduced_motion="no-preference")
    page.evaluate(WATCH_FADES)
    room = page.locator(".plan-room").first.get_attribute("href")
    zoom_to_a_drawer(page)
    expect(page).to_have_title(re.compile("^§ W-"))
    expect(page.locator("main")).to_be_focused()
    page.locator(".trail a").nth(1).click()
    expect(page.get_by_text("Wing, topic")).to_be_visible()
    page.locator(f'.plan-room[href="{room}"]').click()
    page.locator(".trail a").nth(1).click()
    # One stands before the door that one came out of.
    expect(page.locator(f'.plan-room[href="{room}"]')).to_be_focused()
    assert page.evaluate("window.sameDocument")
    assert page.evaluate("window.fades") == 6


@pytest.mark.exhaustive
def test_with_less_motion_nothing_fades(signed_in, furnished):
    page = signed_in(reduced_motion="reduce")
    page.evaluate(WATCH_FADES)
    zoom_to_a_drawer(page)
    assert page.evaluate("[window.sameDocument, window.fades]") == [True, 0]


@pytest.mark.exhaustive
def test_the_way_back_through_a_zoom_leads_to_a_page_whose_keys_work(signed_in, furnished):
    page = signed_in()
    zoom_to_a_drawer(page)
    for word in ("Room", "Wing, topic"):
        left = urlsplit(page.url).path
        page.go_back()
        expect(page.locator(".eyebrow").get_by_text(word, exact=True)).to_be_visible()
        expect(page.locator(f'main a[href="{left}"]').first).to_be_focused()
        # Else its event may be taken for that of the next page.
        page.wait_for_load_state()
    # The page it began with was not fetched by htmx: it is loaded.
    with page.expect_event("load"):
        page.go_back()
    expect(page.get_by_role("heading", name="Floor plan")).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("#go-q")).to_be_focused()


@pytest.mark.exhaustive
def test_without_scripts_one_walks_the_same_way(signed_in, furnished):
    zoom_to_a_drawer(signed_in(java_script_enabled=False))


@pytest.mark.exhaustive
def test_nothing_shifts_when_a_part_of_the_palace_is_exchanged(signed_in, furnished):
    page = signed_in(viewport={"width": 1280, "height": 900})
    page.evaluate(WATCH_SHIFTS)
    page.get_by_role("searchbox", name="Search your memory").fill("wire")
    expect(page.locator(".hit").first).to_be_visible()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("heading", name=re.compile("found"))).to_be_focused()
    page.get_by_role("slider", name="Day").press("ArrowLeft")
    expect(page.locator("#plan-known-title")).to_be_visible()
    page.locator(".plan-room.lit").first.click()
    expect(page.locator(".eyebrow").get_by_text("Room", exact=True)).to_be_visible()
    has_settled(page)
    assert noticeable_shifts(page) == []


@pytest.mark.exhaustive
def test_a_name_of_one_long_word_makes_no_page_scroll_sideways(signed_in, furnished):
    wing = Wing.objects.filter(palace=furnished).exclude(number=Wing.UNSORTED).first()
    change_wing(wing, name="Donaudampf" * 19, kind=wing.kind)
    page = signed_in(viewport={"width": 390, "height": 844})
    own = wing.get_absolute_url()
    for address in ("/memory/", "/memory/?view=list", own, f"{own}timeline/", "/memory/activity/"):
        page.goto(address)
        assert list(layout_faults(page)) == [], address

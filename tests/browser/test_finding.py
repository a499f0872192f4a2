"""Finding: results as one types, filters, keys, and the way to why."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from palace.models import Drawer, RecollectionTrace
from settings_app.accounts import one_time_link
from tests.browser.keys import press
from tests.browser.page_checks import WATCH_SHIFTS, has_settled, noticeable_shifts
from tests.browser.test_onboarding import OVERHEATED, QUESTION

pytestmark = pytest.mark.browser


def box_of(page):
    return page.get_by_role("searchbox", name="Search your memory")


def test_results_come_as_one_types_and_focus_stays(signed_in, furnished):
    page = signed_in()
    page.goto(reverse("memory"))
    page.evaluate("window.sameDocument = true")
    box = box_of(page)
    box.press_sequentially("wire overheated", delay=5)
    expect(page.locator(".hit").first).to_contain_text(OVERHEATED)
    expect(page.locator("#search-status")).to_have_text(re.compile(r"\d+ drawers? found"))
    expect(box).to_be_focused()
    expect(box).to_have_value("wire overheated")
    expect(page).to_have_url(re.compile(r"\?q=wire\+overheated"))
    expect(page).to_have_title(re.compile("^wire overheated"))
    expect(page.locator(".plan-room.lit").first).to_be_visible()
    assert page.evaluate("window.sameDocument")
    assert not RecollectionTrace.objects.exists()
    box.fill("")
    expect(page.locator(".hit")).to_have_count(0)
    expect(page.locator("#search-status")).to_have_text("")


def test_neither_results_nor_a_day_move_what_one_looks_at(signed_in, furnished):
    page = signed_in(viewport={"width": 1440, "height": 900})
    page.goto(reverse("memory"))
    page.evaluate(WATCH_SHIFTS)
    box_of(page).fill("wire overheated")
    expect(page.locator(".hit").first).to_be_visible()
    has_settled(page)
    box_of(page).fill("")
    expect(page.locator(".hit")).to_have_count(0)
    has_settled(page)
    page.get_by_label("On", exact=True).fill("2024-01-01")
    page.get_by_label("On", exact=True).blur()
    expect(page.locator("#plan-known-title")).to_be_visible()
    has_settled(page)
    assert noticeable_shifts(page) == []


def test_an_older_request_is_cancelled(signed_in, furnished):
    page = signed_in()
    page.goto(reverse("memory"))
    box = box_of(page)
    waiting = []
    page.route("**/memory/?q=wire&*", lambda route: waiting.append(route))
    with page.expect_request("**/memory/?q=wire&*") as older:
        box.fill("wire")
    box.fill("sourdough")
    expect(page.locator(".hit").first).to_contain_text("sourdough")
    assert older.value.failure
    expect(page).to_have_url(re.compile("q=sourdough"))


def test_a_filter_narrows_at_once_and_its_chip_removes_it(signed_in, furnished):
    page = signed_in()
    page.goto(f"{reverse('memory')}?q=wire")
    count = page.locator(".hit").count()
    page.locator(".filters summary").click()
    page.locator("#filters").get_by_label("Said by").select_option("assistant")
    expect(page).to_have_url(re.compile("by=assistant"))
    expect(page.locator(".hit").first).to_contain_text("Assistant")
    assert page.locator(".hit").count() < count
    chip = page.get_by_role("link", name="Remove the filter Said by the assistant")
    chip.click()
    expect(chip).to_have_count(0)
    expect(page.locator(".hit")).to_have_count(count)
    expect(page).not_to_have_url(re.compile("by="))


def test_letters_walk_from_hit_to_hit(signed_in, furnished):
    page = signed_in()
    page.goto(f"{reverse('memory')}?q=wire")
    page.locator("h1").click()
    hits = page.locator(".hit h3 a")
    page.keyboard.press("j")
    expect(hits.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(hits.nth(1)).to_be_focused()
    page.locator(".hit").nth(1).locator("summary").focus()
    page.keyboard.press("k")
    expect(hits.nth(0)).to_be_focused()
    page.get_by_role("link", name="Why these results?").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("wire")
    press(page, "j", "j")
    expect(page.locator(".recalled").nth(1).get_by_role("link").first).to_be_focused()


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_from_a_search_to_why_not_this_one(open_context, furnished, alice, scripts):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto(reverse("memory"))
    page.locator(".filters summary").click()
    page.locator("#filters").get_by_label("Said by").select_option("user")
    box_of(page).fill(QUESTION)
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".hit").first).to_contain_text(OVERHEATED)
    expect(page.get_by_role("link", name="Remove the filter Said by you")).to_be_visible()
    page.get_by_text("Something is missing?").click()
    expected = Drawer.objects.with_place().filter(palace=furnished, role="assistant").first()
    page.get_by_label("The drawer you expected").fill(str(expected.pointer))
    page.get_by_role("button", name="Why not this one?").click()
    card = page.locator("#why-not")
    expect(card).to_contain_text("The filters of this search leave it out.")
    card.get_by_role("button", name="Should have been found").click()
    saved = page.get_by_text("Should have been found, saved")
    expected_now = page.get_by_role("heading", name="Expected", exact=True)
    expect(saved if scripts else expected_now).to_be_visible()

"""Whole journeys: a newcomer, a daily user, a private person, and a fact without a mouse."""

from __future__ import annotations

import json
import re
from zipfile import ZipFile

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from palace.models import Drawer, Fact
from settings_app.accounts import one_time_link
from tests.browser.conversations import CONVERSATIONS
from tests.browser.keys import press, tab_to
from tests.browser.test_first_start import import_file
from tests.browser.test_message_actions import MOVED, model  # noqa: F401
from tests.browser.test_onboarding import OVERHEATED, QUESTION, search
from tests.factories import EntityFactory, EvidenceFactory, FactFactory

pytestmark = pytest.mark.browser

WELDER = "Robin works at Wireworks as a welder"


@pytest.fixture
def fact(furnished):
    robin = EntityFactory(palace=furnished, name="Robin", slug="robin")
    made = FactFactory(subject=robin, predicate="works_at", text="Robin works at Wireworks")
    drawer = Drawer.objects.filter(palace=furnished).order_by("pk").first()
    EvidenceFactory(fact=made, drawer=drawer, start=0, end=drawer.text.index(" "))
    return made


def in_rail(page, name):
    return page.get_by_role("navigation", name="Main").get_by_role("link", name=name, exact=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scripts", [True, False])
def test_a_newcomer_tries_the_sample_and_brings_an_own_file(
    open_context,
    loci_worker,
    alice,
    palace,
    tmp_path,
    scripts,
):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto(reverse("memory"))
    page.get_by_role("button", name="Try a sample palace").click()
    expect(page).to_have_url(re.compile("/memory/$"))
    loci_worker.finish(400)
    page.reload()
    banner = page.get_by_role("complementary", name="Sample palace")
    banner.get_by_text("Questions to try").click()
    banner.get_by_role("link", name="What happened to the trip to Norway?").click()
    expect(page.locator(".hits")).to_contain_text("I've cancelled the trip to Norway")
    expect(page.locator(".plan-room.lit").first).to_be_visible()

    in_rail(page, "Facts").click()
    page.locator(".fact").get_by_role("link", name=re.compile("^You ")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^You "))
    page.get_by_role("button", name="Remove the sample").click()
    expect(page.get_by_text(re.compile("The sample is gone: 46 conversations"))).to_be_visible()
    expect(banner).to_have_count(0)
    assert not Drawer.objects.filter(palace=palace).exists()
    assert not Fact.objects.filter(palace=palace).exists()

    page.get_by_role("link", name="Import a file").click()
    file = tmp_path / "conversations.jsonl"
    file.write_text("\n".join(map(json.dumps, CONVERSATIONS)))
    import_file(page, file, loci_worker)
    assert Drawer.objects.filter(palace=palace, text=OVERHEATED).exists()


def say(page, box, text):
    """Send, and wait for the answer to this: an earlier one can be tried again already."""
    answers = page.locator(".said-by-agent")
    earlier = answers.count()
    page.get_by_label(box).fill(text)
    page.get_by_role("button", name="Send").click()
    answer = answers.nth(earlier)
    expect(answer.get_by_role("button", name="Try again")).to_be_visible()


@pytest.mark.exhaustive
@pytest.mark.parametrize("scripts", [True, False])
def test_a_daily_user_asks_looks_up_the_source_and_corrects_what_was_learnt(
    open_context,
    furnished,
    model,  # noqa: F811
    loci_worker,
    alice,
    scripts,
):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    in_rail(page, "Chat").click()
    say(page, "A new conversation", "Which wire became too hot?")
    page.get_by_role("link", name="Where did this come from?").click()
    expect(page.locator(".plan-room.lit").first).to_be_visible()
    page.locator(".plan-sources a", has_text="11 February 2025").first.click()
    expect(page.get_by_text(OVERHEATED)).to_be_visible()

    in_rail(page, "Chat").click()
    page.locator(".talk-link").first.click()
    say(page, "Your message", MOVED)
    loci_worker.finish()
    page.reload()
    page.locator(".learnt summary", has_text="Memory updated: You live in Porto").click()
    page.get_by_role("link", name="You live in Porto").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You live in Porto")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("What it should say").fill("You live in Matosinhos")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You live in Matosinhos")

    in_rail(page, "Palace").click()
    search(page, "Where do I live?")
    expect(page.locator(".hits")).to_contain_text(MOVED)
    in_rail(page, "Facts").click()
    expect(page.locator("main")).to_contain_text("You live in Matosinhos")


@pytest.mark.exhaustive
@pytest.mark.parametrize("scripts", [True, False])
def test_a_private_person_keeps_things_out_sees_what_left_and_leaves(
    open_context,
    furnished,
    model,  # noqa: F811
    loci_worker,
    alice,
    scripts,
):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto("/chat/")
    page.get_by_label("Off the record").check()
    say(page, "A new conversation", "Between us, the safe opens with 4711.")
    loci_worker.finish()
    in_rail(page, "Palace").click()
    search(page, "What opens the safe?")
    expect(page.locator("#found")).to_contain_text("Nothing close")
    expect(page.locator("#found")).not_to_contain_text("4711")

    search(page, QUESTION)
    page.locator(".hit h3 a").first.click()
    page.get_by_role("button", name="Move to the trash").click()
    page.goto("/memory/trash/")
    page.get_by_role("link", name="Empty the trash").click()
    page.get_by_role("button", name="Delete it for good").click()
    page.goto("/memory/")
    search(page, QUESTION)
    expect(page.locator("#found")).not_to_contain_text(OVERHEATED)

    page.goto(reverse("sent"))
    expect(page.locator(".sent-row", has_text="· Chat")).to_have_count(1)
    page.goto(reverse("data_settings"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download your palace").click()
    with ZipFile(download.value.path()) as archive:
        words = b"".join(map(archive.read, archive.namelist()))
    assert b"crimping pliers" in words
    assert OVERHEATED.encode() not in words
    # Not the number alone: digests have such digits too.
    assert b"safe opens" not in words

    page.goto(reverse("account"))
    page.get_by_role("link", name="Delete my account").click()
    page.get_by_label("Your password").fill("alice-password")
    page.get_by_role("button", name="Delete everything, for good").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Your account is"))
    page.goto("/memory/")
    expect(page).to_have_url(re.compile("/sign-in/"))


def test_a_fact_is_found_edited_and_restored_by_keys_alone(signed_in, fact):
    page = signed_in(at="/chat/")
    press(page, "Control+k")
    expect(page.locator("#go-q")).to_be_focused()
    expect(page.locator("#go-found a").first).to_be_visible()
    # Enter at once: the list still answers what was there before.
    page.keyboard.type("facts")
    press(page, "Enter")
    expect(page).to_have_url(re.compile("/facts/$"))

    link = page.get_by_role("link", name=fact.text)
    while not link.evaluate("link => link === document.activeElement"):
        before = page.evaluate("document.activeElement.outerHTML")
        press(page, "j")
        assert page.evaluate("document.activeElement.outerHTML") != before
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(fact.text)

    press(page, "e")
    expect(page.get_by_label("What it should say")).to_be_focused()
    press(page, "Control+a")
    page.keyboard.type(WELDER)
    press(page, "Tab", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(WELDER)
    expect(page.get_by_text("Fact updated.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_role("heading", level=1)).to_have_text(fact.text)
    press(page, "?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    press(page, "g", "p")
    expect(page).to_have_url(re.compile("/memory/$"))


@pytest.mark.exhaustive
def test_by_keys_alone_one_walks_the_plan_asks_trashes_and_takes_back(signed_in, furnished):
    page = signed_in(at="/chat/")
    heading = page.get_by_role("heading", level=1)
    press(page, "g", "p")
    expect(heading).to_have_text("Palace")
    room = page.locator(".plan-room").first
    tab_to(page, room)
    title = room.locator("title").text_content().split(", ")[0]
    press(page, "Enter")
    expect(heading).to_have_text(title)

    press(page, "g", "p")
    expect(heading).to_have_text("Palace")
    box = page.get_by_label("Search your memory")
    tab_to(page, box)
    page.keyboard.type(QUESTION)
    press(page, "Enter")
    expect(page.locator("#results-title")).to_be_focused()
    press(page, "j")
    expect(page.locator(".hit h3 a").first).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_text(OVERHEATED)).to_be_visible()

    press(page, "#")
    expect(page.get_by_text("Moved 1 message to the trash")).to_be_visible()
    assert Drawer.objects.filter(palace=furnished, text=OVERHEATED).trashed().exists()
    press(page, "u")
    expect(page.get_by_text("Moved 1 message to the trash")).to_have_count(0)
    assert Drawer.objects.filter(palace=furnished, text=OVERHEATED).kept().exists()

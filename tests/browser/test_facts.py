"""Facts, people and things as a person walks through them: with and without JavaScript."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from palace.models import Drawer, Fact
from palace.views.entities.connections import NEIGHBOURS_SHOWN
from palace.views.shared.query_params import PAGE_SIZE
from settings_app.accounts import one_time_link
from tests.browser.keys import press
from tests.browser.page_checks import faults_in_light_and_dark, open_everything
from tests.factories import EntityFactory, EvidenceFactory, FactFactory, MentionFactory

pytestmark = pytest.mark.browser

# Without scripts in the exhaustive run alone.
SCRIPTS = [True, pytest.param(False, marks=pytest.mark.exhaustive)]

SAID = datetime(2025, 2, 11, tzinfo=UTC)


@pytest.fixture
def user(furnished):
    return EntityFactory(palace=furnished, name="Robin", slug="robin")


@pytest.fixture
def fact(user):
    """Robin has a neighbour, and rests on the first word of a drawer."""
    drawer = Drawer.objects.filter(palace=user.palace).order_by("pk").first()
    shop = EntityFactory(palace=user.palace, kind="organisation", name="Wireworks", slug="wires")
    made = FactFactory(
        subject=user,
        object_entity=shop,
        predicate="works_at",
        single=True,
        text="Robin works at Wireworks",
        category="work/employer",
        valid_from=SAID,
    )
    end = drawer.text.index(" ")
    EvidenceFactory(fact=made, drawer=drawer, start=0, end=end)
    MentionFactory(entity=user, drawer=drawer, start=0, end=end)
    return made


@pytest.fixture
def opinions(user):
    """Twenty stances on three aspects, some of them on one day."""
    topic = EntityFactory(palace=user.palace, kind="item", name="TypeScript", slug="typescript")
    for number in range(20):
        past = {"retired_at": SAID, "fate": Fact.Fate.SUPERSEDED, "valid_to": SAID}
        made = FactFactory(
            subject=topic,
            type="opinion",
            predicate="opinion",
            aspect=("", "generics", "build tools")[number % 3],
            stance=("positive", "negative", "mixed", "neutral", "")[number % 5],
            text=f"Robin finds this number {number}",
            valid_from=datetime(2020 + number // 6, 1, 1, tzinfo=UTC),
            **past,
        )
    return made


@pytest.fixture
def crowd(user):
    """More neighbours than are drawn, some of them with each other."""
    others = [
        EntityFactory(palace=user.palace, name=f"Somebody With A Long Name {number}")
        for number in range(30)
    ]
    for number, other in enumerate(others):
        FactFactory(
            subject=user, object_entity=other, predicate="friend_of", text=f"A friend, {number}"
        )
        FactFactory(
            subject=other, object_entity=others[number // 2], text=f"Number {number} knows another"
        )
    return others


@pytest.mark.parametrize("scripts", SCRIPTS)
def test_a_fact_is_followed_to_its_words_changed_deleted_and_restored(
    open_context, fact, alice, scripts
):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto(reverse("memory"))
    page.get_by_role("link", name="Facts").click()
    page.get_by_role("link", name=fact.text).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(fact.text)
    page.locator(".words-by").click()
    words = page.locator("mark.rests a", has=page.locator("mark#passage"))
    expect(words).to_have_attribute("title", fact.text)
    words.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(fact.text)

    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("What it should say").fill("Robin works at Wireworks as a welder")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Fact updated.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Robin works at Wireworks as a welder"
    )
    page.get_by_role("link", name="Forget", exact=True).click()
    page.get_by_role("button", name="Forget the fact only").click()
    expect(page.get_by_text("Fact forgotten.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Fact restored.")).to_be_visible()
    assert Fact.objects.active().filter(memory=fact.memory).count() == 1


def test_by_keys_a_fact_is_opened_to_edit_forgotten_and_restored(signed_in, fact):
    page = signed_in(at=fact.get_absolute_url())
    press(page, "e")
    expect(page.get_by_label("What it should say")).to_be_focused()
    page.reload()
    press(page, "#")
    expect(page.get_by_role("button", name="Forget the fact only")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_text("Fact forgotten.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("Fact restored.")).to_be_visible()


@pytest.mark.exhaustive
def test_a_person_is_reached_and_their_neighbour_by_the_drawing(signed_in, fact):
    page = signed_in()
    page.get_by_role("link", name="People", exact=True).click()
    page.get_by_label("Search by name").fill("robin")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Robin", exact=True).click()
    node = page.locator(".graph").get_by_role("link")
    name = "Wireworks, works at, organisation: Robin works at Wireworks"
    expect(node).to_have_accessible_name(name)
    node.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Wireworks")
    page.get_by_label("On", exact=True).fill("2020-01-01")
    expect(page.get_by_text("Nothing is known for that day.")).to_be_visible()
    page.get_by_role("link", name="Today").click()
    expect(page.locator(".graph")).to_be_visible()


def test_a_letter_goes_from_fact_to_fact(signed_in, fact):
    FactFactory(subject=fact.subject, text="Derek sails on Sundays")
    page = signed_in(at="/memory/facts/")
    page.locator("h1").click()
    for row in range(2):
        press(page, "j")
        expect(page.locator(".fact-text a").nth(row)).to_be_focused()
    press(page, "x")
    expect(page.locator("#selected-count")).to_have_text("1 selected")
    press(page, "#")
    expect(page.get_by_text("1 fact forgotten.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("1 fact restored.")).to_be_visible()


def test_people_are_merged_and_trashed_with_the_keyboard_alone(signed_in, fact):
    short = EntityFactory(palace=fact.palace, name="Dirk", slug="dirk")
    MentionFactory(entity=short, drawer=fact.evidence.get().drawer)
    page = signed_in(at="/memory/people-and-things/?kind=person")
    page.locator("h1").click()
    total = page.locator(".pick").count()
    press(page, "j")
    press(page, "x")
    for _ in range(total - 1):
        press(page, "j")
    press(page, "Shift+X")
    expect(page.locator("#selected-count")).to_have_text(f"{total} selected")
    press(page, "e")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Merge {total} into one")
    page.get_by_role("button", name="Merge", exact=True).press("Enter")
    expect(page.locator(".entity")).to_have_count(1)
    press(page, "u")
    expect(page.locator(".entity")).to_have_count(total)
    page.get_by_role("link", name="Dirk").focus()
    press(page, "x")
    press(page, "#")
    page.get_by_role("button", name="Move 1 message to the trash").press("Enter")
    expect(page.get_by_text("Moved 1 message to the trash")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("1 drawer is back in place.")).to_be_visible()


def test_by_letters_one_walks_a_persons_page_and_edits_it(signed_in, fact):
    page = signed_in(at=fact.subject.get_absolute_url())
    page.locator("h1").click()
    press(page, "j")
    expect(page.locator(".fact-text a").first).to_be_focused()
    press(page, "e")
    expect(page.get_by_label("What it should say")).to_be_focused()
    page.goto(fact.subject.get_absolute_url())
    page.locator("h1").click()
    press(page, "j", "x", "#")
    expect(page.get_by_text("1 fact forgotten.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("1 fact restored.")).to_be_visible()
    page.locator("h1").click()
    press(page, "e")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Rename, merge or split")
    wing = fact.evidence.get().drawer.room.wing
    page.goto(reverse("wing_timeline", args=[wing.uuid]))
    press(page, "j")
    expect(page.locator(".story a").first).to_be_focused()


def test_more_of_a_long_list_comes_in_place(signed_in, user):
    for number in range(PAGE_SIZE + 3):
        FactFactory(subject=user, text=f"Number {number}")
    page = signed_in()
    page.goto(reverse("facts"))
    page.evaluate("window.sameDocument = true")
    page.get_by_role("link", name="Show more").click()
    expect(page.locator(".fact")).to_have_count(PAGE_SIZE + 3)
    expect(page.get_by_role("link", name="Number 2", exact=True)).to_be_focused()
    assert page.evaluate("window.sameDocument")


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wrong_where_there_is_much(signed_in, fact, opinions, crowd, width):
    page = signed_in(viewport={"width": width, "height": 844}, reduced_motion="reduce")
    robin = reverse("entity_detail", args=[fact.subject.uuid])
    drawer = fact.evidence.get().drawer
    addresses = {
        "facts": reverse("facts") + "?state=all&category=work&as_of=2025-03-01",
        "a bad day": reverse("facts") + "?as_of=soon",
        "an opinion": opinions.get_absolute_url(),
        "a person": robin,
        "a person then": f"{robin}?as_of=2025-03-01",
        "merge or split": reverse("entity_edit", args=[crowd[0].uuid]),
        "people": reverse("entities") + "?kind=person",
        "a drawer": f"{drawer.get_absolute_url()}?passage=0-2",
    }
    faults = {}
    for name, address in addresses.items():
        page.goto(address)
        open_everything(page)
        faults[name] = faults_in_light_and_dark(page)
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.exhaustive
def test_on_a_phone_the_drawing_scrolls_and_the_page_does_not(signed_in, fact, crowd):
    page = signed_in(viewport={"width": 390, "height": 844})
    page.goto(reverse("entity_detail", args=[fact.subject.uuid]))
    expect(page.locator(".graph .node")).to_have_count(NEIGHBOURS_SHOWN)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    frame = page.get_by_role("region", name="Picture of the connections")
    assert frame.evaluate("frame => frame.scrollWidth > frame.clientWidth")
    small = page.locator(".graph .name").first.evaluate(
        "text => text.getBoundingClientRect().height"
    )
    assert small >= 12

"""The inbox as a person works through it: by mouse, by keyboard, many at once, without scripts."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from language.english.topics.wings import EVERYDAY
from palace.knowledge.dreaming.decisions import accept, reject
from palace.models import Drawer, Fact, Proposal, Room
from palace.storage import wing_for
from settings_app.accounts import one_time_link
from tests.browser.keys import press
from tests.browser.page_checks import faults_in_light_and_dark, has_settled, open_everything
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)
from tests.knowledge.dreaming.conftest import held, proposed

pytestmark = pytest.mark.browser

# Without scripts in the exhaustive run alone.
SCRIPTS = [True, pytest.param(False, marks=pytest.mark.exhaustive)]

SAID = datetime(2025, 2, 11, tzinfo=UTC)


@pytest.fixture
def user(furnished):
    return EntityFactory(palace=furnished, name="Robin", slug="robin")


@pytest.fixture
def drops(user):
    """Three proposals to let a fact go; the newest, which comes first, is of number 2."""
    return [proposed(user.palace, "drop", noise(user, number)) for number in range(3)]


@pytest.fixture
def every_kind(user, drops):
    """One at least of each kind, and what was decided on or went stale."""
    palace, drawer = user.palace, Drawer.objects.filter(palace=user.palace).first()
    one, other = noise(user, 10), noise(user, 11)
    filed = {"category": "things/noises", "tags": ["noise"]}
    proposed(palace, "merge", one, other, after="Robin hummed tune number 10", **filed)
    proposed(palace, "refine", noise(user, 12), after="Robin hums number 12", **filed)
    proposed(palace, "outdated", noise(user, 13))
    proposed(palace, "contradiction", noise(user, 14), beside=[noise(user, 15)])
    asks = {"source": "inferred", "requires_user_permission": "true"}
    more = {"category": "user-preferences/inferred", "metadata": asks, "quotes": [drawer]}
    proposed(palace, "preference", after="Robin wants to be asked before paying", **more)
    more["category"] = "anti-patterns/music"
    proposed(palace, "anti_pattern", after="Don't hum for Robin — instead whistle", **more)
    accept(palace, drops[0])
    reject(palace, drops[1])
    gone = noise(user, 16)
    proposed(palace, "drop", gone)
    Fact.objects.filter(pk=gone.pk).update(retired_at=SAID, fate="deleted")


def noise(user, number):
    fact = FactFactory(subject=user, text=f"Robin hums number {number}", valid_from=SAID)
    drawer = Drawer.objects.filter(palace=user.palace).order_by("pk").first()
    EvidenceFactory(fact=fact, drawer=drawer, start=0, end=drawer.text.index(" "))
    return fact


def statuses():
    return list(Proposal.objects.order_by("pk").values_list("status", flat=True))


def card(page, number):
    return page.get_by_role("article").filter(has_text=f"Robin hums number {number}")


def keys_from_outside(page):
    """The first proposal is reached before the script has come too, from a tab, from a summary."""
    held = []
    page.route(re.compile(r"/inbox\.js"), lambda route: held.append(route))
    page.reload(wait_until="commit")
    expect(card(page, 2)).to_be_visible()
    for key in "jjgkxk":  # Behind g, k does not go up.
        page.keyboard.press(key)
    held[0].continue_()
    expect(card(page, 1).get_by_role("checkbox")).to_be_checked()
    expect(card(page, 2)).to_be_focused()
    page.wait_for_load_state()
    page.get_by_role("link", name="Decided").focus()
    page.keyboard.press("j")
    expect(card(page, 2)).to_be_focused()
    page.get_by_text("Keys", exact=True).click()
    page.keyboard.press("j")
    expect(card(page, 2)).to_be_focused()


@pytest.mark.parametrize("scripts", SCRIPTS)
def test_one_is_accepted_undone_and_another_rejected(open_context, drops, alice, scripts):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto(reverse("memory"))
    page.get_by_role("link", name="Review 3 waiting").click()
    if scripts:
        keys_from_outside(page)
    card(page, 2).get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Accepted", exact=True)).to_be_visible()
    assert statuses() == ["proposed", "proposed", "accepted"]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone; it will not be proposed")).to_be_visible()
    card(page, 1).get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Rejected; it will not be proposed again")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(card(page, 1).get_by_role("button", name="Accept")).to_be_visible()
    assert statuses() == ["proposed", "proposed", "undone"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("scripts", [True, False])
def test_all_of_a_kind_are_selected_accepted_and_undone(open_context, drops, alice, scripts):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto(reverse("inbox"))
    expect(page.get_by_role("button", name="Accept selected")).to_be_hidden()
    page.get_by_role("button", name="Select these 3").click()
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(3)
    if scripts:
        expect(page.get_by_role("status").filter(has_text="3 selected")).to_be_visible()
        page.get_by_role("button", name="Unselect these 3").click()
        expect(page.get_by_role("checkbox", checked=True)).to_have_count(0)
        page.get_by_role("button", name="Select these 3").click()
    page.get_by_role("checkbox").first.uncheck()
    page.get_by_role("button", name="Accept selected").click()
    expect(page.get_by_text("Accepted: 2 proposals.")).to_be_visible()
    assert statuses() == ["accepted", "accepted", "proposed"]
    undo = page.get_by_role("button", name="Undo")
    if scripts:
        expect(undo).to_be_focused()
        has_settled(page)
        page.keyboard.press("u")
    else:
        undo.click()
    expect(page.get_by_text("Undone: 2 proposals.")).to_be_visible()
    assert statuses() == ["undone", "undone", "proposed"]


@pytest.mark.exhaustive
def test_by_keyboard_one_goes_through_decides_and_takes_back(signed_in, drops):
    page = signed_in(at=reverse("inbox"))
    page.evaluate("window.sameDocument = true")
    page.keyboard.press("a")  # Outside of the list it is a letter like others.
    page.keyboard.press("j")
    expect(card(page, 2)).to_be_focused()
    page.get_by_role("checkbox").first.focus()
    page.keyboard.press("j")
    expect(card(page, 1)).to_be_focused()
    page.keyboard.press("x")
    expect(card(page, 1).get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("k")
    expect(card(page, 2)).to_be_focused()
    page.keyboard.press("Control+a")
    for key in ("g", "j", "g", "Shift", "j"):
        page.keyboard.press(key)
    expect(card(page, 2)).to_be_focused()
    assert statuses() == ["proposed"] * 3
    page.keyboard.press("a")
    expect(card(page, 2).get_by_role("button", name="Undo")).to_be_focused()
    has_settled(page)
    page.keyboard.press("j")
    page.keyboard.press("r")
    expect(card(page, 1).get_by_role("button", name="Undo")).to_be_focused()
    has_settled(page)
    assert statuses() == ["proposed", "rejected", "accepted"]
    expect(page.locator("#count-all")).to_have_count(
        0
    )  # Of one kind alone there is nothing to pick.
    page.keyboard.press("u")
    expect(card(page, 1)).to_be_focused()
    expect(card(page, 1).get_by_role("button", name="Accept")).to_be_visible()
    has_settled(page)
    page.keyboard.press("k")
    page.keyboard.press("u")
    expect(card(page, 2).get_by_text("Undone; it will not be proposed")).to_be_visible()
    assert statuses() == ["proposed", "proposed", "undone"]
    assert page.evaluate("window.sameDocument")
    page.get_by_text("Keys", exact=True).click()
    expect(page.get_by_text("the one before")).to_be_visible()
    card(page, 1).focus()
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_url(f"**{reverse('activities')}")
    assert statuses() == ["proposed", "proposed", "undone"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("scripts", [True, False])
def test_enter_in_a_box_decides_nothing(open_context, drops, alice, scripts):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto(reverse("inbox"))
    box = page.get_by_role("checkbox").first
    box.check()
    box.press("Enter")
    page.wait_for_load_state("networkidle")
    assert statuses() == ["proposed"] * 3


def test_by_keyboard_a_suggested_wing_is_made_and_unmade(signed_in, furnished):
    room = RoomFactory(wing=wing_for(furnished, EVERYDAY), area="Sports", title="Rowing at six")
    DrawerFactory(room=room)
    page = signed_in(at=f"{reverse('inbox')}?show=rooms")
    suggested = page.get_by_role("article", name="Make a wing “Sports” for this conversation")
    expect(suggested).to_be_visible()
    suggested.focus()
    press(page, "a")
    expect(page.get_by_text("Rowing at six: Filed under “Sports”.")).to_be_visible()
    assert Room.objects.get(pk=room.pk).wing.name == "Sports"
    press(page, "u")
    expect(page.get_by_text("Undone: 1 message moved back")).to_be_visible()
    assert Room.objects.get(pk=room.pk).wing.name == EVERYDAY.name


def test_by_keyboard_a_conversation_is_filed_with_its_project(signed_in, furnished):
    project = WingFactory(palace=furnished, name="Rowing app", kind="project")
    wing = wing_for(furnished, EVERYDAY)
    room = RoomFactory(wing=wing, project=project.pk, title="Rowing at six")
    for one in (room, RoomFactory(wing=project)):
        DrawerFactory(room=one)
    page = signed_in(at=f"{reverse('inbox')}?show=rooms")
    page.get_by_role("article", name="Rowing at six").focus()
    press(page, "r")
    expect(page.get_by_text("It stays where it is.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("Its project may be suggested again.")).to_be_visible()
    page.get_by_role("article", name="Rowing at six").focus()
    press(page, "a")
    expect(page.get_by_text("Rowing at six: Filed under “Rowing app”.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("Undone: 1 message moved back")).to_be_visible()
    assert Room.objects.get(pk=room.pk).wing == wing


@pytest.mark.exhaustive
def test_by_keyboard_rooms_are_selected_and_go_together(signed_in, furnished):
    Room.objects.update(created_at=SAID, recalled_at=None)
    Room.objects.filter(pk=Room.objects.first().pk).update(recalled_at=SAID)
    page = signed_in(at=f"{reverse('inbox')}?show=rooms")
    press(page, "j", "x", "j", "x")
    expect(page.locator("#selected-count")).to_have_text("2 selected")
    press(page, "#")
    expect(page.get_by_text(re.compile(r"Moved \d+ messages to the trash"))).to_be_visible()
    assert Drawer.objects.trashed().values("room").distinct().count() == 2
    press(page, "u")
    expect(page.get_by_text("are back in place")).to_be_visible()


def test_what_changed_meanwhile_says_so_in_its_place(signed_in, furnished, drops):
    page = signed_in(at=reverse("inbox"))
    accept(furnished, drops[2])
    Fact.objects.filter(text="Robin hums number 1").update(retired_at=SAID, fate="deleted")
    card(page, 1).get_by_role("button", name="Accept").click()
    expect(card(page, 1).get_by_text("Nothing was done.")).to_be_visible()
    expect(card(page, 1).get_by_role("button")).to_have_count(0)
    card(page, 2).get_by_role("button", name="Accept").click()  # Twice is as once.
    expect(card(page, 2).get_by_text("Accepted", exact=True)).to_be_visible()
    assert "Robin hums number 2" not in held(furnished)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scripts", [True, False])
def test_a_dream_is_begun_waited_for_and_its_proposals_seen(
    open_context, loci_worker, user, alice, scripts
):
    for verb in ("likes", "enjoys"):
        FactFactory(
            subject=user,
            predicate="likes",
            object="hiking",
            text=f"Robin {verb} hiking",
            valid_from=SAID,
        )
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto(reverse("inbox"))
    if not scripts:
        page.get_by_role("link", name="See what it looks at").click()
    page.get_by_role("button", name="Tidy up now").click()
    came = page.locator(".last-dream", has_text="1 change proposed")
    expect(came).to_be_visible(timeout=60_000)
    page.get_by_role("link", name="See what it proposed").click()
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("heading", name="2 facts become one")).to_be_visible()
    page.goto(reverse("activities"))
    expect(page.get_by_text("1 change proposed")).to_be_visible()


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wrong_with_any_of_it(signed_in, every_kind, width):
    page = signed_in(viewport={"width": width, "height": 844}, reduced_motion="reduce")
    inbox, faults = reverse("inbox"), {}
    for query in ("", "?select=drop", "?show=decided", "?show=stale", "?kind=merge"):
        page.goto(inbox + query)
        open_everything(page)
        expect(page.get_by_role("article").first).to_be_visible()
        faults[query] = faults_in_light_and_dark(page)
    page.goto(inbox)
    page.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Reject selected").click()
    expect(page.get_by_text("Rejected: 1 proposal.")).to_be_visible()
    page.get_by_role("button", name="Accept Robin").last.click()
    expect(page.get_by_text("Accepted", exact=True)).to_be_visible()
    faults["decided in place"] = faults_in_light_and_dark(page)
    assert {name: found for name, found in faults.items() if found} == {}

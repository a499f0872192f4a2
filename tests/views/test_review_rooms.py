"""Review: suggested wings, and rooms that were not filed, not embedded, or never recalled."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from language.english.topics.wings import EVERYDAY
from palace.curation.refiling import move_room, undo_move
from palace.mining.pipeline import make_wing
from palace.models import Drawer, Passage, Room, Wing
from palace.storage import wing_for
from palace.storage.indexing.spaces import active_space
from palace.views.inbox import PROPOSALS_SHOWN
from tests.factories import DrawerFactory, FactFactory, RoomFactory, WingFactory
from tests.knowledge.dreaming.conftest import proposed

INBOX = "/memory/inbox/"
ROOMS = f"{INBOX}?show=rooms"
HTMX = {"HX-Request": "true"}
LONG_AGO = timezone.now() - timedelta(days=400)


def act(client, room, do, *, part=False, **sent):
    target = reverse("review_room", args=[room.uuid, do])
    return client.post(target, sent, headers=HTMX if part else {}, follow=not part)


@pytest.fixture
def unfiled(palace):
    drawer = DrawerFactory(
        room=RoomFactory(wing=WingFactory(palace=palace, number=0, name="Unsorted"))
    )
    Drawer.objects.filter(pk=drawer.pk).update(filed_at=LONG_AGO)
    return drawer.room


@pytest.fixture
def unrecalled(drawer):
    """An old room of which nothing is recalled, although its neighbour is."""
    old = DrawerFactory(room=RoomFactory(wing=drawer.room.wing, title="The old boat")).room
    Room.objects.update(created_at=LONG_AGO)
    Room.objects.filter(pk=drawer.room.pk).update(recalled_at=timezone.now())
    return old


@pytest.fixture
def two_of_cooking(palace):
    wing = wing_for(palace, EVERYDAY)
    rooms = [
        RoomFactory(wing=wing, area="Cooking & food", title=title)
        for title in ("Leek <soup>", "Roast chicken")
    ]
    for room in rooms:
        DrawerFactory(room=room)
    return rooms


@pytest.fixture
def of_a_project(palace, two_of_cooking):
    """One that waits for the wing of an area, and that a dream found to be of a project."""
    room, other = two_of_cooking
    other.drawers.get().trash()
    project = WingFactory(palace=palace, name="Budget & tracker", kind="project")
    DrawerFactory(room=RoomFactory(wing=project))
    Room.objects.filter(pk=room.pk).update(project=project.pk)
    room.refresh_from_db()
    return room


def test_the_page_is_called_review(alices, palace):
    text = alices.get(INBOX).text
    assert "<h1>Review</h1>" in text
    assert "<title>Review" in text


def test_rooms_have_their_own_list_and_come_after_the_last_proposal(alices, palace, unfiled, user):
    for number in range(PROPOSALS_SHOWN + 1):
        proposed(palace, "drop", FactFactory(subject=user, text=f"Number {number}"))
    first = alices.get(INBOX).text
    assert "Not filed yet" not in first
    following = re.search(r'hx-get="([^"]+after=[^"]+)"', first)[1].replace("&amp;", "&")
    assert "Not filed yet" in alices.get(following, headers=HTMX).text
    rooms = alices.get(INBOX, {"show": "rooms"}).text
    assert "Not filed yet" in rooms
    assert 'aria-current="page">Rooms<' in rooms
    assert alices.get(INBOX, {"show": "rooms", "kind": "drop"}).text.count("Only “") == 0
    assert act(alices, unfiled, "mine").redirect_chain == [(ROOMS, 302)]
    Drawer.objects.update(filed_at=timezone.now())
    assert "No room needs you." in alices.get(INBOX, {"show": "rooms"}).text


@pytest.mark.parametrize("part", [False, True])
def test_an_unfiled_room_is_filed_where_one_says(alices, unfiled, wing, part):
    page = alices.get(INBOX).text
    assert "Not filed yet" in page
    assert f'<option value="{wing.uuid}">{wing.name}</option>' in page
    assert "1 message in the unsorted wing" in page
    response = act(alices, unfiled, "file", part=part, wing=wing.uuid)
    assert f"Filed under “{wing.name}”." in response.text
    unfiled.refresh_from_db()
    assert unfiled.wing == wing
    assert "Not filed yet" not in alices.get(INBOX).text
    undo = re.search(r'action="(/memory/activity/[^"]+)"', response.text)[1]
    back = alices.post(undo, {"next": ROOMS}, follow=True)
    assert back.redirect_chain == [(ROOMS, 302)]
    assert "Undone: 1 message moved back." in back.text
    assert "Not filed yet" in back.text


@pytest.mark.parametrize("part", [False, True])
def test_a_suggested_wing_is_made_and_unmade(alices, palace, two_of_cooking, part):
    for address in (INBOX, ROOMS):
        page = alices.get(address).text
        assert "Make a wing “Cooking &amp; food” for these 2 conversations" in page
        assert "Leek &lt;soup&gt;" in page
    accepted = act(alices, two_of_cooking[0], "make-wing", part=part)
    assert "Filed under “Cooking &amp; food”." in accepted.text
    made = Wing.objects.get(palace=palace, name="Cooking & food")
    assert made.rooms.count() == 2
    assert "Suggested wings" not in alices.get(INBOX).text
    assert "No wing is suggested" in act(alices, two_of_cooking[1], "make-wing").text
    undo = re.search(r'action="(/memory/activity/[^"]+)"', accepted.text)[1]
    back = alices.post(undo, {"next": ROOMS}, follow=True)
    assert "2 messages moved back, and Loci does not make “Cooking &amp; food” again." in back.text
    assert not Wing.objects.filter(pk=made.pk).exists()
    assert "Suggested wings" not in back.text


@pytest.mark.parametrize("part", [False, True])
def test_a_conversation_is_filed_with_its_project_and_stays_out_once_that_is_undone(
    alices, palace, of_a_project, part
):
    for address in (INBOX, ROOMS):
        page = alices.get(address).text
        assert "About a project" in page
        assert "Leek &lt;soup&gt;" in page
        assert "In “Budget &amp; tracker”, with the other conversations" in page
    accepted = act(alices, of_a_project, "join", part=part)
    assert "Filed under “Budget &amp; tracker”." in accepted.text
    of_a_project.refresh_from_db()
    assert of_a_project.wing.name == "Budget & tracker"
    assert "About a project" not in alices.get(INBOX).text
    assert "no longer suggested" in act(alices, of_a_project, "join").text
    undo = re.search(r'action="(/memory/activity/[^"]+)"', accepted.text)[1]
    back = alices.post(undo, {"next": ROOMS}, follow=True)
    assert "Undone: 1 message moved back." in back.text
    assert "About a project" not in back.text
    of_a_project.refresh_from_db()
    assert of_a_project.wing.name == EVERYDAY.name
    # Its area is still there to be accepted.
    assert "Make a wing “Cooking &amp; food” for this conversation" in back.text


def test_a_rejected_project_is_suggested_again_only_when_that_is_undone(alices, of_a_project):
    rejected = act(alices, of_a_project, "stay", part=True)
    assert "Loci does not suggest a project for it again" in rejected.text
    page = alices.get(ROOMS).text
    assert "About a project" not in page
    assert "Make a wing “Cooking &amp; food” for this conversation" in page
    assert "no longer suggested" in act(alices, of_a_project, "stay").text
    alices.post(re.search(r'action="([^"]+)"', rejected.text)[1])
    assert "About a project" in alices.get(ROOMS).text


@pytest.mark.parametrize("do", ["join", "stay"])
def test_on_a_page_from_before_it_was_moved_no_project_is_accepted_or_rejected(
    alices, palace, of_a_project, do
):
    mums = WingFactory(palace=palace, name="Mum")
    move_room(of_a_project, mums)
    assert "no longer suggested" in act(alices, of_a_project, do).text
    of_a_project.refresh_from_db()
    assert of_a_project.wing == mums


def test_a_project_whose_wing_is_gone_is_not_suggested(alices, of_a_project):
    Wing.objects.filter(pk=of_a_project.project).delete()
    assert "About a project" not in alices.get(ROOMS).text
    assert "no longer suggested" in act(alices, of_a_project, "join").text


@pytest.mark.parametrize("do", ["join", "stay", "unsettle"])
def test_a_strangers_project_is_not_found(bobs, of_a_project, do):
    before = of_a_project.wing
    assert act(bobs, of_a_project, do).status_code == 404
    of_a_project.refresh_from_db()
    assert (of_a_project.wing, of_a_project.is_settled) == (before, False)


def test_another_palaces_wing_is_not_suggested(alices, of_a_project):
    Room.objects.update(project=WingFactory(name="Elsewhere", kind="project").pk)
    assert "About a project" not in alices.get(ROOMS).text
    assert "no longer suggested" in act(alices, of_a_project, "join").text


def test_a_rejected_wing_is_suggested_again_only_when_that_is_undone(
    alices, palace, two_of_cooking
):
    rejected = act(alices, two_of_cooking[0], "reject-wing", part=True)
    assert "Loci does not suggest it again" in rejected.text
    assert "No room needs you." in alices.get(ROOMS).text
    alices.post(re.search(r'action="([^"]+)"', rejected.text)[1])
    assert "for these 2 conversations" in alices.get(ROOMS).text
    assert not Wing.objects.filter(palace=palace, name="Cooking & food").exists()


@pytest.mark.parametrize("do", ["make-wing", "reject-wing"])
def test_on_a_page_from_before_its_wing_was_made_nothing_is_accepted_or_rejected(
    alices, palace, two_of_cooking, do
):
    make_wing(palace, "Cooking & food")
    # Its area is still known where an earlier version of Loci has moved it.
    Room.objects.filter(pk=two_of_cooking[0].pk).update(area="Cooking & food")
    assert "No wing is suggested" in act(alices, two_of_cooking[0], do).text
    palace.refresh_from_db()
    assert palace.rejected_areas == []


def test_what_was_rejected_in_another_tab_is_accepted(alices, palace, two_of_cooking):
    act(alices, two_of_cooking[0], "reject-wing")
    assert "No wing is suggested" in act(alices, two_of_cooking[1], "reject-wing").text
    act(alices, two_of_cooking[0], "make-wing")
    palace.refresh_from_db()
    assert palace.rejected_areas == []


def test_rejected_areas_are_listed_and_suggested_again(alices, palace, two_of_cooking):
    assert "Rejected wings" not in alices.get(ROOMS).text
    undo_move(palace, make_wing(palace, "Cooking & food"))
    Room.objects.exclude(pk=two_of_cooking[0].pk).update(area="")
    page = alices.get(ROOMS).text
    assert "Rejected wings" in page
    assert "Suggested wings" not in page
    assert "Rejected wings" not in alices.get(INBOX).text
    address = re.search(r'action="(/memory/inbox/areas/[^"]+)"', page)[1]
    again = alices.post(address, follow=True)
    assert again.redirect_chain == [(ROOMS, 302)]
    assert "A wing “Cooking &amp; food” may be suggested" in again.text
    assert "Make a wing “Cooking &amp; food” for this conversation" in again.text
    assert "Rejected wings" not in again.text
    assert alices.post(reverse("suggest_area", args=["nonsense"]), follow=True).status_code == 200


def test_of_many_conversations_the_first_are_named(alices, palace, two_of_cooking):
    wing = two_of_cooking[0].wing
    wing.kept_months = 3
    wing.save()
    for number in range(7):
        DrawerFactory(room=RoomFactory(wing=wing, area="Cooking & food", title=f"Dish {number}."))
    page = alices.get(ROOMS).text
    assert "for these 9 conversations" in page
    assert "and 1 more" in page
    assert "Dish 5." in page
    assert "Dish 6." not in page
    assert "has rules about what it keeps" in page


def test_a_suggestion_says_to_which_wing_it_moves_if_there_is_one(alices, palace, two_of_cooking):
    WingFactory(palace=palace, name="Kitchen").aliases.create(palace=palace, slug="cooking-food")
    two_of_cooking[1].drawers.get().trash()
    assert "Move this conversation to “Kitchen”" in alices.get(ROOMS).text
    act(alices, two_of_cooking[0], "make-wing")
    two_of_cooking[0].refresh_from_db()
    assert two_of_cooking[0].wing.name == "Kitchen"


def test_for_a_room_of_no_area_no_wing_is_made_or_rejected(alices, palace, drawer):
    for do in ("make-wing", "reject-wing"):
        assert "No wing is suggested" in act(alices, drawer.room, do).text
    palace.refresh_from_db()
    assert palace.rejected_areas == []


def test_what_is_just_being_filed_is_not_asked_about(alices, unfiled):
    Drawer.objects.update(filed_at=timezone.now())
    assert "Not filed yet" not in alices.get(INBOX).text


@pytest.mark.parametrize("wing", ["", "nonsense"])
def test_a_wing_that_is_none_is_named(alices, unfiled, wing):
    assert "That wing is no longer here" in act(alices, unfiled, "file", wing=wing).text
    unfiled.refresh_from_db()
    assert unfiled.wing.number == Wing.UNSORTED


def test_messages_without_a_vector_are_counted_by_room(alices, drawer):
    space = active_space()
    for ordinal in range(2):
        Passage.objects.create(
            palace=drawer.palace, space=space, drawer=drawer, ordinal=ordinal, start=0, end=3
        )
    page = alices.get(INBOX).text
    assert "1 message in “Efoil rebuild” cannot be found by meaning" in page
    assert "Loci tries again" in act(alices, drawer.room, "embed").text
    drawer.trash()
    assert "Found by words only" not in alices.get(INBOX).text


def test_an_old_room_that_no_recall_brought_is_kept_or_not(alices, unrecalled, drawer):
    page = alices.get(INBOX).text
    assert re.findall(r'id="room-unrecalled-(\d+)"', page) == [str(unrecalled.number)]
    kept = act(alices, unrecalled, "keep", part=True)
    assert "Loci does not ask about it again" in kept.text
    assert "Never recalled" not in alices.get(INBOX).text
    undo = re.search(r'action="([^"]+)"', kept.text)[1]
    alices.post(undo)
    assert "Never recalled" in alices.get(INBOX).text


def test_an_old_room_goes_to_the_trash_and_comes_back(alices, unrecalled):
    gone = act(alices, unrecalled, "trash")
    assert "Moved 1 message to the trash." in gone.text
    assert "Never recalled" not in gone.text
    undo = re.search(r'action="(/memory/trash/[^"]+)"', gone.text)[1]
    assert f'name="next" value="{ROOMS}"' in gone.text
    back = alices.post(undo, {"next": ROOMS}, follow=True)
    assert back.redirect_chain == [(ROOMS, 302)]
    assert "The old boat" in back.text


def test_several_rooms_to_review_are_selected_at_once(alices, unrecalled):
    box = f'form="selected" type="checkbox" name="room" value="{unrecalled.uuid}"'
    text = alices.get(ROOMS).text
    assert box in text
    assert 'action="/memory/selected/"' in text
    assert box not in alices.get(INBOX).text


def test_without_any_recall_nothing_is_called_unrecalled(alices, unrecalled):
    Room.objects.update(recalled_at=None)
    assert "Never recalled" not in alices.get(INBOX).text


@pytest.mark.parametrize("do", ["make-wing", "reject-wing"])
def test_a_strangers_suggestion_is_not_found(bobs, palace, two_of_cooking, do):
    assert act(bobs, two_of_cooking[0], do).status_code == 404
    palace.refresh_from_db()
    assert palace.rejected_areas == []
    assert not Wing.objects.filter(palace=palace, name="Cooking & food").exists()


def test_only_ones_own_areas_are_suggested_again_and_not_by_a_link(alices, bobs, palace):
    palace.reject_areas(["Travel"])
    address = reverse("suggest_area", args=["travel"])
    assert bobs.post(address).status_code == 302
    assert alices.get(address).status_code == 405
    alices.logout()
    assert alices.post(address).url.startswith(reverse("sign_in"))
    palace.refresh_from_db()
    assert palace.rejected_areas == ["Travel"]


@pytest.mark.parametrize("do", ["file", "mine", "embed", "keep", "ask", "trash"])
def test_a_strangers_room_is_not_found(bobs, unrecalled, wing, do):
    assert act(bobs, unrecalled, do, wing=wing.uuid).status_code == 404
    unrecalled.refresh_from_db()
    assert unrecalled.reviewed_at is None
    assert unrecalled.drawers.kept().exists()


def test_what_nobody_knows_to_do_is_not_found(alices, unrecalled):
    assert act(alices, unrecalled, "burn").status_code == 404

"""Several drawers and rooms moved, trashed and restored at once."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.urls import reverse

from language.transcripts import Transcript, Turn
from palace.curation.trash import move_to_trash
from palace.mining.pipeline import mine
from palace.models import Drawer, Fact, Wing
from palace.views import edit_places
from tests.factories import (
    ClosetFactory,
    DrawerFactory,
    EntityFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)

SELECTED = "/memory/selected/"


def post(client, do, **sent):
    return client.post(SELECTED, {"do": do, **sent}, follow=True)


@pytest.fixture
def three(drawer):
    return [drawer, *DrawerFactory.create_batch(2, room=drawer.room, closet=drawer.closet)]


@pytest.fixture
def derek(palace):
    return WingFactory(palace=palace, name="Derek", slug="derek")


def test_every_row_has_a_box_of_the_one_form(alices, three):
    drawer = three[0]
    for place in (drawer.room, drawer.closet):
        page = alices.get(place.get_absolute_url()).text
        assert page.count('class="pick" form="selected" type="checkbox" name="drawer"') == 3
        assert f'action="{SELECTED}"' in page
    room = alices.get(drawer.room.get_absolute_url()).text
    assert f'name="closet" value="{drawer.closet.uuid}"' in room
    wing = alices.get(drawer.room.wing.get_absolute_url()).text
    assert f'name="room" value="{drawer.room.uuid}"' in wing
    move_to_trash(drawer)
    assert f'name="drawer" value="{drawer.uuid}"' in alices.get(reverse("trash")).text


def test_some_go_to_the_trash_in_one_batch_and_come_back(alices, three):
    first, second, stays = three
    back = first.room.get_absolute_url()
    gone = post(alices, "trash", drawer=[first.uuid, second.uuid], next=back)
    assert gone.redirect_chain == [(back, 302)]
    assert "Moved 2 messages to the trash." in gone.text
    assert list(Drawer.objects.kept()) == [stays]
    assert Drawer.objects.trashed().values("trashed_at").distinct().count() == 1
    undo = re.search(r'action="(/memory/trash/[^"]+)"', gone.text)[1]
    alices.post(undo)
    assert Drawer.objects.kept().count() == 3


def test_a_room_goes_with_all_its_drawers(alices, three):
    other = DrawerFactory(room=RoomFactory(wing=three[0].room.wing))
    post(alices, "trash", room=[three[0].room.uuid])
    assert list(Drawer.objects.kept()) == [other]
    post(alices, "trash", room=[three[0].room.uuid])
    assert Drawer.objects.trashed().count() == 3


def test_closets_go_with_their_drawers(alices, three, derek):
    first = three[0]
    other, stays = (
        DrawerFactory(room=first.room, closet=ClosetFactory(room=first.room)) for _ in "ab"
    )
    closets = [first.closet.uuid, other.closet.uuid]
    asked = post(alices, "move", drawer=[first.uuid], closet=closets)
    assert "<strong>4 messages</strong> move together" in asked.text
    moved = post(alices, "move", closet=closets, wing=derek.uuid)
    assert "Moved 4 messages to “Derek”." in moved.text
    assert list(Drawer.objects.exclude(room__wing=derek)) == [stays]
    alices.post(undo_of(moved.text))
    assert not Drawer.objects.filter(room__wing=derek).exists()
    post(alices, "trash", closet=closets)
    assert list(Drawer.objects.kept()) == [stays]


def test_some_of_the_trash_are_restored(alices, three):
    move_to_trash(three[0].room)
    done = post(alices, "restore", drawer=[three[0].uuid, three[1].uuid], next=reverse("trash"))
    assert "2 messages restored." in done.text
    assert list(Drawer.objects.trashed()) == [three[2]]


def test_moving_asks_where_and_says_what_goes(alices, three, derek):
    asked = post(alices, "move", drawer=[three[0].uuid], room=[three[0].room.uuid])
    assert "<strong>1 conversation, 3 messages</strong> move together" in asked.text
    assert f'<option value="{derek.uuid}">Derek</option>' in asked.text
    sent = re.findall(r'type="hidden" name="(drawer|room)" value="([^"]+)"', asked.text)
    assert sent == [("drawer", str(three[0].uuid)), ("room", str(three[0].room.uuid))]
    done = post(alices, "move", drawer=[three[0].uuid], wing=derek.uuid)
    assert "Moved 1 message to “Derek”." in done.text
    assert Drawer.objects.get(room__wing=derek) == three[0]


def undo_of(page):
    """The address of the form behind the one Undo on the page."""
    [address] = re.findall(r'<form method="post" action="(/memory/activity/[^"]+)">', page)
    return address


@pytest.mark.parametrize("whole", [True, False])
def test_what_was_moved_goes_back(alices, three, derek, whole):
    room, wing = three[0].room, three[0].room.wing
    chosen = {"room": [room.uuid]} if whole else {"drawer": [each.uuid for each in three[:2]]}
    moved = post(alices, "move", wing=derek.uuid, **chosen)
    assert Drawer.objects.filter(room__wing=derek).count() == (3 if whole else 2)
    back = alices.post(undo_of(moved.text), follow=True)
    assert f"Undone: {3 if whole else 2} messages moved back." in back.text
    assert back.redirect_chain == [(wing.get_absolute_url(), 302)]
    assert "/undo/" not in back.text
    assert Drawer.objects.filter(room=room).count() == 3


def test_what_came_from_several_wings_goes_back_to_each(alices, three, derek):
    wing, room = three[0].room.wing, RoomFactory(wing__palace=derek.palace)
    elsewhere, there = DrawerFactory(room=room), DrawerFactory(room=RoomFactory(wing=derek))
    moved = post(
        alices, "move", wing=derek.uuid, drawer=[three[0].uuid, there.uuid], room=[room.uuid]
    )
    assert "Moved 2 messages to “Derek”." in moved.text
    back = alices.post(undo_of(moved.text), follow=True)
    assert "Undone: 2 messages moved back." in back.text
    places = Drawer.objects.values_list("uuid", "room__wing")
    assert dict(places.filter(pk__in=[three[0].pk, elsewhere.pk, there.pk])) == {
        three[0].uuid: wing.pk,
        elsewhere.uuid: room.wing_id,
        there.uuid: derek.pk,
    }


def test_an_undo_without_its_wing_moves_nothing(alices, three, derek):
    wing = three[0].room.wing
    undo = undo_of(post(alices, "move", wing=derek.uuid, room=[three[0].room.uuid]).text)
    assert not Wing.objects.filter(pk=wing.pk).exists()
    taken = WingFactory(palace=derek.palace, name=wing.name, slug=wing.slug)
    refused = alices.post(undo, follow=True)
    assert f"Another wing is called “{html.escape(wing.name)}” now" in refused.text
    assert Drawer.objects.filter(room__wing=derek).count() == 3
    taken.delete()
    alices.post(undo)
    assert Drawer.objects.filter(room__wing=wing).count() == 3


def test_a_stranger_moves_nothing_back(alices, bobs, three, derek):
    undo = undo_of(post(alices, "move", wing=derek.uuid, room=[three[0].room.uuid]).text)
    assert bobs.post(undo).status_code == 404
    assert Drawer.objects.filter(room__wing=derek).count() == 3


def test_what_has_no_place_to_go_back_to_has_no_undo(alices, three, derek):
    both = [each.uuid for each in three[:2]]
    post(alices, "move", wing=derek.uuid, drawer=both)
    # They are there already.
    again = post(alices, "move", wing=derek.uuid, drawer=both)
    assert "There was nothing to move: all of it is in “Derek” already." in again.text
    assert "/undo/" not in again.text
    trashed = DrawerFactory(room=RoomFactory(wing=three[0].room.wing))
    move_to_trash(trashed)
    in_trash = post(alices, "move", wing=derek.uuid, drawer=[trashed.uuid])
    assert "There was nothing to move: it is in the trash." in in_trash.text


def test_what_was_unsorted_goes_back_to_wait(alices, derek):
    unsorted = WingFactory(palace=derek.palace, number=0)
    waiting = DrawerFactory(room=RoomFactory(wing=unsorted))
    moved = post(alices, "move", wing=derek.uuid, drawer=[waiting.uuid])
    assert "Moved 1 message to “Derek”." in moved.text
    alices.post(undo_of(moved.text))
    assert Drawer.objects.get().room.wing == unsorted


def test_the_unsorted_wing_takes_nothing(alices, three, palace):
    unsorted = WingFactory(palace=palace, number=0)
    done = post(alices, "move", drawer=[three[0].uuid], wing=unsorted.uuid)
    assert "Nothing can be moved to the unsorted wing" in done.text


def test_nothing_selected_and_too_much_are_said(alices, three, monkeypatch):
    assert "Nothing was selected." in post(alices, "trash").text
    monkeypatch.setattr(edit_places, "MOST_AT_ONCE", 2)
    assert "At most 2" in post(alices, "trash", drawer=[each.uuid for each in three]).text
    assert not Drawer.objects.trashed().exists()


def test_enter_in_a_box_does_nothing(alices, three):
    post(alices, "", drawer=[three[0].uuid])
    assert not Drawer.objects.trashed().exists()


@pytest.mark.parametrize("do", ["trash", "restore", "move"])
def test_a_strangers_rows_are_not_found(bobs, alices, three, do):
    assert post(bobs, do, drawer=[three[0].uuid], room=[three[0].room.uuid]).status_code == 404
    assert post(alices, do, drawer=[uuid4()]).status_code == 404
    assert post(alices, do, drawer=["nonsense"]).status_code == 404
    assert Drawer.objects.kept().count() == 3


SELECTED_FACTS = "/memory/facts/selected/"


@pytest.fixture
def two_facts(palace):
    subject = EntityFactory(palace=palace)
    return [FactFactory(subject=subject, text=text) for text in ("Eve sails", "Eve bakes")]


def post_facts(client, do, facts):
    sent = {"do": do, "fact": [fact.memory for fact in facts]}
    return client.post(SELECTED_FACTS, sent, follow=True)


def active(palace):
    return set(Fact.objects.within(palace).active().values_list("text", flat=True))


@pytest.mark.parametrize(
    ("do", "said"), [("forget", "2 facts forgotten."), ("wrong", "2 facts marked as wrong.")]
)
def test_selected_facts_are_dropped_together_and_come_back(alices, palace, two_facts, do, said):
    page = alices.get(reverse("facts")).text
    assert page.count('class="pick" form="selected" type="checkbox" name="fact"') == 2
    dropped = post_facts(alices, do, two_facts)
    assert said in dropped.text
    assert active(palace) == set()
    assert "There was nothing to do" in post_facts(alices, do, two_facts).text
    assert "2 facts restored." in post_facts(alices, "restore", two_facts).text
    assert active(palace) == {"Eve sails", "Eve bakes"}


def test_without_a_tick_no_fact_is_touched(alices, palace, two_facts):
    assert "Tick the boxes of the rows first." in post_facts(alices, "forget", []).text
    assert len(active(palace)) == 2


def test_hits_are_selected_like_rows(alices, palace):
    said_at = datetime(2025, 1, 1, tzinfo=UTC)
    mine(
        palace, Transcript("plain", "boat", "", (Turn("0", "user", "The boat is blue.", said_at),))
    )
    page = alices.get("/memory/", {"q": "Which colour is the boat?"}).text
    assert f'name="drawer" value="{Drawer.objects.get().uuid}"' in page
    assert page.count(f'action="{SELECTED}"') == 1

from __future__ import annotations

import pytest

from palace.curation.purge import Purge
from palace.curation.refiling import BadMove, move_drawers, move_into, move_room
from palace.curation.trash import drawers_in, move_to_trash
from palace.knowledge.episodes.episode_writer import write_episodes
from palace.mining.pipeline import mine
from palace.models import Activity, Closet, Drawer, Episode, Room, Wing
from palace.models.hierarchy import Pointer
from palace.queries.places import find_by_pointer
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.places import unsorted_wing
from tests.conversations import START, transcript
from tests.curation.test_purge import words_in_the_database
from tests.factories import ClosetFactory, DrawerFactory, RoomFactory, WingFactory


@pytest.fixture
def wing(palace):
    return WingFactory(palace=palace)


def picked(palace, *drawers):
    return Drawer.objects.within(palace).filter(pk__in=[drawer.pk for drawer in drawers])


def place(drawer):
    drawer.refresh_from_db()
    return drawer.room.wing, drawer.room, drawer.closet.title


def test_a_room_moves_with_all_it_holds_and_pointers_still_lead(palace, wing):
    room = RoomFactory(wing=WingFactory(palace=palace), number=7)
    kept, gone = DrawerFactory(room=room), DrawerFactory(room=room, trashed_at=START)
    pointer, left = kept.pointer, room.wing
    moved = move_room(room, wing)
    assert (moved.pk, moved.wing) == (room.pk, wing)
    assert {drawer.pk for drawer in drawers_in(wing)} == {kept.pk, gone.pk}
    assert find_by_pointer(palace, pointer) == kept
    assert not Wing.objects.filter(pk=left.pk).exists()
    palace.refresh_from_db()
    assert palace.highest_wing >= left.number
    assert move_room(room, wing) == moved
    [talk] = Activity.objects.filter(palace=palace)
    assert talk.summary == "Moved 2 drawers to another wing."
    assert talk.detail == {"drawers": 2, "wing": str(wing.uuid)}


def test_part_of_a_room_gets_a_room_and_closets_of_its_own(palace, wing):
    room = RoomFactory(wing=WingFactory(palace=palace))
    batteries, keels = ClosetFactory(room=room), ClosetFactory(room=room)
    staying = DrawerFactory(room=room, closet=batteries, number=1)
    along = DrawerFactory(room=room, closet=batteries, number=2)
    alone = DrawerFactory(room=room, closet=keels, number=3, said_at=START)
    former = along.pointer
    move_drawers(palace, picked(palace, along, alone), wing)
    assert place(staying) == (room.wing, room, batteries.title)
    there = Room.objects.get(wing=wing)
    assert place(along) == (wing, there, batteries.title)
    assert place(alone) == (wing, there, keels.title)
    assert alone.closet == keels
    assert (there.external_id, there.ended_at) == (room.external_id, START)
    assert find_by_pointer(palace, along.pointer) == along
    # It comes back, but not to where it was: nothing ever stands there again.
    move_into(palace, picked(palace, along), room)
    along.refresh_from_db()
    assert along.number > 3
    assert along.closet == batteries
    assert find_by_pointer(palace, former) is None


def test_what_is_moved_to_another_room_stays_recalled(palace, wing):
    room = RoomFactory(wing=WingFactory(palace=palace), recalled_at=START)
    DrawerFactory(room=room, number=1)
    move_drawers(palace, picked(palace, DrawerFactory(room=room, number=2)), wing)
    assert [each.recalled_at for each in Room.objects.within(palace)] == [START, START]


def test_what_is_left_of_a_conversation_joins_what_went_before(palace, wing):
    room = RoomFactory(wing=WingFactory(palace=palace))
    first, second = DrawerFactory.create_batch(2, room=room)
    move_drawers(palace, picked(palace, first), wing)
    move_drawers(palace, picked(palace, second), wing)
    there = Room.objects.get()
    assert {first.pk, second.pk} == {drawer.pk for drawer in drawers_in(there)}
    for drawer in (first, second):
        drawer.refresh_from_db()
        assert find_by_pointer(palace, drawer.pointer) == drawer
    assert find_by_pointer(palace, Pointer(wing.number, room.number, second.number)) is None


def test_drawers_stay_with_their_conversation(palace, wing):
    other = RoomFactory(wing=wing)
    drawer = DrawerFactory(room=RoomFactory(wing=wing))
    with pytest.raises(BadMove, match="one conversation"):
        move_into(palace, picked(palace, drawer), other)
    with pytest.raises(BadMove, match="unsorted"):
        move_drawers(palace, picked(palace, drawer), unsorted_wing(palace))
    with pytest.raises(BadMove, match="unsorted"):
        move_room(other, unsorted_wing(palace))
    drawer.refresh_from_db()
    assert drawer.room != other


def test_moved_words_are_found_and_a_purge_leaves_none_of_them(palace, wing):
    talk = transcript("The Goffriller cello needs a bridge.", "Ask Ada about bridges.", id="one")
    room = mine(palace, talk)[0].room
    Room.objects.filter(pk=room.pk).update(title="Goffriller repairs")
    Closet.objects.filter(room=room).update(title="Goffriller bridge")
    first, second = Drawer.objects.order_by("position")
    move_drawers(palace, picked(palace, first), wing)
    hit = recall(palace, RecallRequest("what does the cello need?")).hits[0]
    assert (hit.drawer, hit.drawer.room.wing) == (first, wing)
    move_to_trash(Drawer.objects.get(pk=first.pk))
    Purge(palace).run(drawers_in(first))
    assert "goffriller" not in words_in_the_database()
    second.refresh_from_db()
    assert "bridge" in second.room.title.lower() + second.closet.title.lower()


def test_what_continues_goes_on_where_the_conversation_is(palace, wing):
    talk = transcript("I keep bees.", "How many hives?", id="bees")
    room = mine(palace, talk)[0].room
    move_room(room, wing)
    longer = transcript("I keep bees.", "How many hives?", "Three hives.", id="bees")
    mine(palace, longer)
    assert Room.objects.get().wing == wing
    assert drawers_in(wing).count() == 3
    write_episodes(palace, [Room.objects.get()])
    assert Episode.objects.get().messages == 3

from __future__ import annotations

import pytest

from palace.curation.empty_places import NoWayBack
from palace.curation.purge import Purge
from palace.curation.refiling import BadMove, move_drawers, move_into, move_room, undo_move
from palace.curation.trash import drawers_in, move_to_trash
from palace.curation.wings import change_wing, merge_wings
from palace.knowledge.episodes import write_episodes
from palace.mining.pipeline import mine
from palace.models import Activity, Closet, Drawer, Episode, Room, Wing, WingAlias
from palace.models.hierarchy import Pointer
from palace.queries.places import find_by_pointer
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.intake import unsorted_wing
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
    undo = talk.detail.pop("undo")
    assert talk.detail == {"drawers": 2, "wing": str(wing.uuid)}
    before = {"id": room.pk, "wing": left.pk, "slot": None, "area": "", "is_settled": False}
    assert undo["rooms"] == [before]


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


def everything(palace):
    """All that a move changes, except the numbers that are not given again."""
    drawers = Drawer.objects.within(palace).order_by("pk")
    rooms = Room.objects.within(palace).order_by("pk")
    columns = [field.attname for field in Wing._meta.concrete_fields]
    return [
        list(drawers.values_list("pk", "room_id", "number", "closet__slug")),
        list(rooms.values_list("pk", "uuid", "number", "wing_id", "slot", "title")),
        list(Wing.objects.within(palace).order_by("pk").values(*columns)),
        list(WingAlias.objects.order_by("slug").values_list("slug", "wing_id")),
    ]


def last_move(palace):
    return Activity.objects.filter(palace=palace, kind=Activity.Kind.DRAWERS_MOVED).latest("pk")


@pytest.fixture
def emptied(palace):
    """A wing of two rooms with slots, whose names, kind and rule are all its own."""
    left = WingFactory(palace=palace, name="Old boat", kind="project", kept_months=7, never=["Ada"])
    change_wing(left, name="Cutter", kind="person", aliases=["Sloop"])
    for slot in (4, 2):
        room = RoomFactory(wing=left, slot=slot)
        DrawerFactory(room=room, number=3, closet=ClosetFactory(room=room))
        DrawerFactory(room=room, number=5, trashed_at=START)
    Wing.objects.filter(pk=left.pk).update(created_at=START)
    return Wing.objects.get(pk=left.pk)


def test_undoing_a_move_brings_back_the_wing_that_it_emptied(palace, wing, emptied):
    RoomFactory(wing=wing, slot=0)
    before = everything(palace)
    move_drawers(palace, drawers_in(emptied), wing)
    assert not Wing.objects.filter(pk=emptied.pk).exists()
    assert undo_move(palace, last_move(palace)) == (2, [emptied])
    assert everything(palace) == before
    assert Activity.objects.filter(summary="Moved 2 drawers back.").count() == 1
    first = Activity.objects.filter(palace=palace, detail__undone=True).get()
    assert undo_move(palace, first) == (0, [])


def test_the_last_room_of_a_wing_moves_out_and_back(palace, wing, emptied):
    RoomFactory(wing=wing)
    before = everything(palace)
    for room in Room.objects.filter(wing=emptied):
        move_room(room, wing)
    later, earlier = Activity.objects.filter(kind=Activity.Kind.DRAWERS_MOVED).order_by("-pk")
    # Also by the first of the two: it is the second that emptied the wing.
    undo_move(palace, earlier)
    assert Room.objects.filter(wing=emptied).count() == 1
    undo_move(palace, later)
    assert everything(palace) == before


def test_a_room_that_was_joined_is_taken_apart_again(palace, wing, emptied):
    room = Room.objects.get(wing=emptied, slot=4)
    there = RoomFactory(
        wing=wing, source=room.source, external_id=room.external_id, title=room.title
    )
    DrawerFactory(room=there, number=1)
    before = everything(palace)
    move_drawers(palace, drawers_in(emptied), wing)
    assert Room.objects.within(palace).count() == 2
    undo_move(palace, last_move(palace))
    assert everything(palace) == before


def test_drawers_that_moved_alone_get_their_pointers_back(palace, wing, emptied):
    room = Room.objects.get(wing=emptied, slot=4)
    before = everything(palace)
    move_drawers(palace, drawers_in(room).kept(), wing)
    assert Room.objects.within(palace).count() == 3
    undo_move(palace, last_move(palace))
    after = everything(palace)
    assert after[:2] == before[:2]
    # The wing was made for nothing else.
    assert [row["id"] for row in after[2]] == [emptied.pk]


def test_what_moved_on_stays_and_its_former_wing_does_not_come_back(palace, wing, emptied):
    one, two = Room.objects.filter(wing=emptied)
    RoomFactory(wing=wing, slot=0)
    move_drawers(palace, drawers_in(emptied), wing)
    move = last_move(palace)
    third = WingFactory(palace=palace)
    move_room(one, third)
    assert undo_move(palace, move) == (1, [emptied])
    one.refresh_from_db()
    two.refresh_from_db()
    assert (one.wing, two.wing) == (third, emptied)
    move_drawers(palace, drawers_in(emptied), wing)
    move = last_move(palace)
    move_room(two, third)
    with pytest.raises(NoWayBack, match="moved on"):
        undo_move(palace, move)
    assert not Wing.objects.filter(pk=emptied.pk).exists()


def test_a_slot_that_was_taken_meanwhile_stays_taken(palace, wing, emptied):
    room = Room.objects.get(wing=emptied, slot=4)
    move_room(room, wing)
    newer = RoomFactory(wing=emptied, slot=4)
    undo_move(palace, last_move(palace))
    room.refresh_from_db()
    newer.refresh_from_db()
    assert (room.wing, room.slot, newer.slot) == (emptied, None, 4)


def test_a_wing_does_not_come_back_beside_one_of_its_name(palace, wing, emptied):
    move_drawers(palace, drawers_in(emptied), wing)
    WingFactory(palace=palace, name="Cutter", slug="cutter")
    before = everything(palace)
    with pytest.raises(NoWayBack, match="Another wing is called “Cutter” now"):
        undo_move(palace, last_move(palace))
    assert everything(palace) == before


def test_what_was_unsorted_goes_back_to_wait(palace, wing):
    unsorted = unsorted_wing(palace)
    DrawerFactory(room=RoomFactory(wing=unsorted))
    move_drawers(palace, Drawer.objects.within(palace), wing)
    assert undo_move(palace, last_move(palace)) == (1, [unsorted])
    assert Room.objects.get().wing == unsorted


@pytest.mark.parametrize("whole", [True, False])
def test_a_purge_forgets_the_wing_that_a_move_emptied(palace, wing, emptied, whole):
    if not whole:
        for room in Room.objects.filter(wing=emptied):
            RoomFactory(wing=wing, source=room.source, external_id=room.external_id)
    DrawerFactory(room=RoomFactory(wing=wing))
    going = [drawer.pk for drawer in drawers_in(emptied)]
    move_drawers(palace, drawers_in(emptied), wing)
    drawers = Drawer.objects.within(palace).filter(pk__in=going)
    drawers.update(trashed_at=START)
    Purge(palace).run(drawers.filter(pk=going[0]))
    assert "cutter" in words_in_the_database()
    Purge(palace).run(drawers)
    assert Wing.objects.filter(pk=wing.pk).exists()
    left = words_in_the_database()
    assert [word for word in ("cutter", "sloop", "old boat") if word in left] == []
    with pytest.raises(NoWayBack):
        undo_move(palace, last_move(palace))


def test_a_purge_that_removes_the_other_wing_forgets_the_emptied_one(palace, wing, emptied):
    first = WingFactory(palace=palace, name="Dr. Weiss")
    change_wing(first, name="Dr. Klein", kind="topic")
    DrawerFactory(room=RoomFactory(wing=first))
    move_drawers(palace, drawers_in(first), emptied)
    move_drawers(palace, drawers_in(emptied), wing)
    assert "cutter" in words_in_the_database()
    drawers = Drawer.objects.within(palace)
    drawers.update(trashed_at=START)
    Purge(palace).run(drawers)
    assert not Wing.objects.filter(pk=wing.pk).exists()
    left = words_in_the_database()
    assert [word for word in ("weiss", "klein", "cutter", "sloop") if word in left] == []


def test_a_purge_forgets_the_names_of_merged_wings(palace, wing, emptied):
    merge_wings(emptied, wing)
    drawers = Drawer.objects.within(palace)
    drawers.update(trashed_at=START)
    Purge(palace).run(drawers)
    assert "cutter" not in words_in_the_database()


def test_each_of_several_emptied_wings_is_forgotten_by_itself(palace, wing, emptied):
    other = WingFactory(palace=palace, name="Dr. Weiss")
    staying = DrawerFactory(room=RoomFactory(wing=other, slot=3))
    move_drawers(palace, Drawer.objects.within(palace), wing)
    drawers = Drawer.objects.within(palace).exclude(pk=staying.pk)
    drawers.update(trashed_at=START)
    Purge(palace).run(drawers)
    left = words_in_the_database()
    assert [word for word in ("cutter", "sloop", "old boat", "ada") if f'"{word}' in left] == []
    assert undo_move(palace, last_move(palace)) == (1, [other])


def test_a_purge_spares_the_name_of_a_wing_that_came_back(palace, wing, emptied):
    one, two = Room.objects.filter(wing=emptied)
    move_room(one, wing)
    earlier = last_move(palace)
    move_room(two, wing)
    undo_move(palace, earlier)
    drawers = drawers_in(wing)
    drawers.update(trashed_at=START)
    Purge(palace).run(drawers)
    assert not Wing.objects.filter(pk=wing.pk).exists()
    assert Activity.objects.filter(palace=palace, summary__contains="Cutter").exists()


def test_undo_forgets_the_wings_that_it_removes_or_leaves_out(palace, wing, emptied):
    change_wing(wing, name="Dr. Weiss", kind="topic")
    staying = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace)))
    moving = Drawer.objects.within(palace)
    move_drawers(palace, moving, wing)
    move = last_move(palace)
    for room in Room.objects.exclude(pk=staying.room_id):
        move_room(room, WingFactory(palace=palace))
    assert undo_move(palace, move)[0] == 1
    assert not Wing.objects.filter(pk=wing.pk).exists()
    left = words_in_the_database()
    assert [word for word in ("weiss", "cutter", "sloop") if word in left] == []


def test_undo_joins_a_room_with_one_of_its_conversation_that_came_since(palace, wing, emptied):
    room = Room.objects.get(wing=emptied, slot=4)
    move_room(room, wing)
    move = last_move(palace)
    move_drawers(palace, drawers_in(room).kept(), emptied)
    again = Room.objects.get(wing=emptied, external_id=room.external_id)
    Room.objects.filter(pk=again.pk).update(slot=7)
    assert undo_move(palace, move) == (0, [emptied])
    again.refresh_from_db()
    assert (again.slot, drawers_in(again).count()) == (7, 2)
    assert not Room.objects.filter(pk=room.pk).exists()


def test_undo_takes_what_was_joined_out_of_a_room_that_it_joins(palace, wing, emptied):
    room = Room.objects.get(wing=emptied, slot=4)
    third = WingFactory(palace=palace)
    joined = DrawerFactory(
        room=RoomFactory(wing=third, source=room.source, external_id=room.external_id), number=9
    )
    DrawerFactory(room=RoomFactory(wing=third))
    selected = drawers_in(room) | drawers_in(joined.room)
    move_drawers(palace, selected, wing)
    move = last_move(palace)
    back = drawers_in(room).kept().exclude(pk=joined.pk)
    move_drawers(palace, back, emptied)
    undo_move(palace, move)
    joined.refresh_from_db()
    assert (joined.room.wing, joined.number) == (third, 9)
    assert drawers_in(emptied).count() == 4


def test_undo_leaves_the_slots_of_rooms_that_moved_on(palace, wing, emptied):
    one, _ = Room.objects.filter(wing=emptied)
    move_drawers(palace, drawers_in(emptied), wing)
    move = last_move(palace)
    move_room(one, WingFactory(palace=palace))
    undo_move(palace, move)
    one.refresh_from_db()
    assert one.slot is None

from __future__ import annotations

import pytest

from language.extraction import WingFound
from palace.curation.refiling import move_room
from palace.curation.trash import move_to_trash
from palace.curation.wings import (
    BadWing,
    NameTaken,
    NoWayBack,
    change_wing,
    merge_wings,
    preview_merge,
    undo_merge_wings,
)
from palace.mining.pipeline import mine, mine_room
from palace.models import Activity, Closet, Drawer, Room, Wing, WingAlias
from palace.models.hierarchy import Pointer
from palace.queries.places import find_by_pointer
from palace.storage.intake import wing_for
from palace.storage.transcript_filing import file_transcript
from tests.conversations import BATTERY, transcript
from tests.curation.test_trash import at_once
from tests.factories import ClosetFactory, DrawerFactory, RoomFactory, WingFactory


def found(palace, name, *aliases):
    return wing_for(palace, WingFound("topic", name, aliases))


@pytest.fixture
def efoil(palace):
    return found(palace, "Efoil rebuild", "The board")


@pytest.fixture
def derek(palace):
    return found(palace, "Derek", "Dirk")


def fill(wing, count=1):
    room = RoomFactory(wing=wing, slot=20 - Room.objects.count())
    return DrawerFactory.create_batch(count, room=room, closet=ClosetFactory(room=room))


def test_a_wing_takes_a_new_name_and_mining_finds_it_by_both(palace, efoil):
    change_wing(efoil, name="  Hydrofoil\n board ", kind="project")
    efoil.refresh_from_db()
    assert (efoil.name, efoil.slug, efoil.kind) == ("Hydrofoil board", "hydrofoil-board", "project")
    for name in ("Efoil rebuild", "Hydrofoil board", "hydrofoil BOARD", "The board"):
        assert found(palace, name) == efoil
    assert Wing.objects.count() == 1


def test_what_is_mined_later_lands_in_the_renamed_wing(palace):
    first = mine(palace, BATTERY)[0].room
    first.refresh_from_db()
    wing = first.wing
    change_wing(wing, name="Something else entirely", kind=wing.kind)
    later = transcript(*[turn.text for turn in BATTERY.turns], id="later", title=BATTERY.title)
    mine(palace, later)
    assert Room.objects.get(external_id="later").wing == wing
    assert Wing.objects.exclude(number=Wing.UNSORTED).count() == 1


def test_a_wing_can_take_its_old_name_again(efoil):
    change_wing(efoil, name="Board", kind="topic")
    change_wing(efoil, name="Efoil rebuild", kind="topic")
    efoil.refresh_from_db()
    assert efoil.slug == "efoil-rebuild"
    assert set(WingAlias.objects.values_list("slug", flat=True)) == {
        "efoil-rebuild",
        "the-board",
        "board",
    }


def test_only_the_spelling_may_change(efoil):
    change_wing(efoil, name="EFOIL Rebuild!", kind="topic")
    efoil.refresh_from_db()
    assert (efoil.name, efoil.slug) == ("EFOIL Rebuild!", "efoil-rebuild")


@pytest.mark.parametrize("name", ["Derek", "DEREK!", "Dirk"])
def test_a_name_or_alias_of_another_wing_is_refused_and_says_whose(efoil, derek, name):
    with pytest.raises(NameTaken, match="merge the two") as refused:
        change_wing(efoil, name=name, kind="topic")
    assert refused.value.by == derek
    efoil.refresh_from_db()
    assert efoil.name == "Efoil rebuild"


@pytest.mark.parametrize("name", ["", "  \n", "x" * 201, "Unsorted", "unsorted!"])
def test_a_name_that_is_none_is_refused(efoil, name):
    with pytest.raises(BadWing):
        change_wing(efoil, name=name, kind="topic")


def test_a_kind_that_is_none_is_refused(efoil):
    with pytest.raises(BadWing, match="kinds"):
        change_wing(efoil, name="Efoil", kind="palace")


@pytest.mark.parametrize("name", ["x" * 200, "???", "名前", "a\0b", "\ud800 half"])
def test_a_name_of_any_signs_is_taken(efoil, name):
    change_wing(efoil, name=name, kind="topic")
    efoil.refresh_from_db()
    assert efoil.slug


def test_another_palaces_names_do_not_matter(efoil, bob):
    elsewhere = WingFactory(palace__owner=bob, slug="derek", name="Derek")
    change_wing(efoil, name="Derek", kind="person")
    elsewhere.refresh_from_db()
    assert elsewhere.name == "Derek"


def test_the_unsorted_wing_stays_as_it_is(palace, efoil):
    file_transcript(palace, BATTERY)
    unsorted = Wing.objects.get(number=Wing.UNSORTED)
    with pytest.raises(BadWing, match="unsorted"):
        change_wing(unsorted, name="Sorted", kind="topic")
    for pair in ((unsorted, efoil), (efoil, unsorted)):
        with pytest.raises(BadWing, match="unsorted"):
            preview_merge(*pair)
        with pytest.raises(BadWing, match="unsorted"):
            merge_wings(*pair)


def test_merging_moves_rooms_names_and_pointers(palace, efoil, derek):
    drawers = fill(derek, 2) + fill(derek)
    move_to_trash(drawers[0])
    fill(efoil)
    pointers = {drawer.pk: Pointer.parse(str(drawer.pointer)) for drawer in drawers[1:]}
    planned = preview_merge(derek, efoil)
    merged = merge_wings(derek, efoil)
    assert planned == merged
    assert (merged.rooms, merged.drawers, merged.trashed) == (2, 2, 1)
    assert list(Wing.objects.all()) == [efoil]
    assert Room.objects.filter(wing=efoil).count() == 3
    for key, pointer in pointers.items():
        assert find_by_pointer(palace, pointer).pk == key
    for name in ("Derek", "Dirk", "Efoil rebuild"):
        assert found(palace, name) == efoil


def test_names_pass_on_through_many_merges(palace, efoil, derek):
    change_wing(derek, name="Derrick", kind="person")
    third = found(palace, "Boats")
    merge_wings(derek, efoil)
    merge_wings(efoil, third)
    for name in ("Derek", "Dirk", "Derrick", "Efoil rebuild", "The board", "Boats"):
        assert found(palace, name) == third


def test_a_merged_wings_number_is_not_given_again(palace, efoil, derek):
    merge_wings(derek, efoil)
    assert found(palace, "Somebody new").number == derek.number + 1


def test_a_wing_is_not_merged_with_itself(efoil):
    with pytest.raises(BadWing, match="itself"):
        merge_wings(efoil, efoil)
    assert Wing.objects.get() == efoil


def test_a_conversation_that_both_wings_have_becomes_one_room(palace, efoil, derek):
    here = RoomFactory(wing=efoil, external_id="same")
    there = RoomFactory(wing=derek, external_id="same", number=here.number + 500)
    both = [ClosetFactory(room=room, slug="wires") for room in (here, there)]
    own = ClosetFactory(room=there, slug="own")
    kept = [DrawerFactory(room=here, closet=both[0], number=n) for n in (1, 2)]
    moved = [DrawerFactory(room=there, closet=closet, number=1 + n) for n, closet in
             enumerate((both[1], own, None))]  # fmt: skip
    merge_wings(derek, efoil)
    assert list(Room.objects.all()) == [here]
    numbers = Drawer.objects.order_by("number").values_list("pk", "number")
    assert list(numbers) == [(d.pk, n) for n, d in enumerate([*kept, *moved], start=1)]
    assert [Drawer.objects.get(pk=d.pk).closet for d in moved] == [both[0], own, None]
    assert set(Closet.objects.filter(room=here)) == {both[0], own}
    assert found(palace, "Derek") == efoil
    assert mine(palace, transcript("More.", id="new"))[0].room.number == there.number + 1


def test_a_conversation_goes_on_in_the_merged_wing(palace, efoil):
    room = mine(palace, BATTERY)[0].room
    room.refresh_from_db()
    merge_wings(room.wing, efoil)
    texts = [*(turn.text for turn in BATTERY.turns), "And what about 6-AWG?"]
    mine(palace, transcript(*texts, id="battery"))
    last = Drawer.objects.with_place().get(text=texts[-1])
    assert (last.room_id, last.room.wing) == (room.pk, efoil)


def test_activities_say_what_became_of_the_wings(efoil, derek):
    fill(derek, 3)
    change_wing(efoil, name="Board", kind="project")
    change_wing(efoil, name="Board", kind="project")
    change_wing(efoil, name="Board", kind="agent")
    merge_wings(derek, efoil)
    assert [activity.summary for activity in Activity.objects.all()] == [
        "“Derek” is part of “Board” now: 1 room with 3 drawers moved.",
        "“Board” is an agent now.",
        "“Efoil rebuild” is called “Board” now, and a project.",
    ]


def test_the_longest_names_fit_into_the_sentence(palace):
    one, two = found(palace, "x" * 200), found(palace, "y" * 200)
    merge_wings(one, two)
    assert Activity.objects.get().summary.endswith("0 rooms with 0 drawers moved.")


@pytest.mark.django_db(transaction=True)
def test_two_merges_at_once_lose_no_room(palace, efoil, derek):
    fill(derek)
    fill(efoil)
    refused = []

    def merge(one, other):
        def work():
            try:
                merge_wings(one, other)
            except BadWing as error:
                refused.append(str(error))

        return work

    at_once(merge(efoil, derek), merge(derek, efoil))
    assert len(refused) == 1
    assert "no longer exists" in refused[0]
    assert Room.objects.filter(wing=Wing.objects.get()).count() == 2


@pytest.mark.django_db(transaction=True)
def test_two_cannot_take_one_name_at_once(palace, efoil, derek):
    refused = []

    def rename(wing):
        def work():
            try:
                change_wing(wing, name="The same", kind="topic")
            except NameTaken as error:
                refused.append(error.by)

        return work

    at_once(rename(efoil), rename(derek))
    assert len(refused) == 1
    assert Wing.objects.get(name="The same") == refused[0]


@pytest.mark.django_db(transaction=True)
def test_mining_while_its_wing_is_merged_lands_in_the_other(palace):
    texts = [turn.text for turn in BATTERY.turns]

    def talks(name, number):
        return [transcript(*texts, id=f"{name} {n}", title=BATTERY.title) for n in range(number)]

    first, *_ = [mine(palace, talk)[0].room for talk in talks("first", 3)]
    first.refresh_from_db()
    into = WingFactory(palace=palace)
    rooms = [file_transcript(palace, talk).room for talk in talks("later", 4)]
    at_once(
        *(lambda room=room: mine_room(room) for room in rooms),
        lambda: merge_wings(first.wing, into),
    )
    assert not Drawer.objects.unmined().exists()
    assert set(Room.objects.values_list("wing", flat=True)) == {into.pk}


def snapshot():
    drawers = Drawer.objects.order_by("pk").values_list("pk", "room_id", "number", "closet__slug")
    columns = ("pk", "uuid", "number", "wing_id", "slot", "title")
    rooms = Room.objects.order_by("pk").values_list(*columns)
    wings = Wing.objects.order_by("pk").values()
    aliases = WingAlias.objects.order_by("slug").values_list("slug", "wing_id")
    return [list(rows) for rows in (drawers, rooms, wings, aliases)]


def test_a_merge_is_undone_with_rooms_names_numbers_and_pointers(palace, efoil, derek):
    fill(efoil, 2)
    fill(derek, 3)
    move_to_trash(fill(derek)[0])
    here = RoomFactory(wing=efoil, external_id="same", title="One talk")
    there = RoomFactory(wing=derek, external_id="same", title="One talk", slot=7)
    DrawerFactory(room=here, number=1, closet=ClosetFactory(room=here, slug="wires"))
    for number, slug in ((1, "wires"), (4, "own")):
        DrawerFactory(room=there, number=number, closet=ClosetFactory(room=there, slug=slug))
    before = snapshot()
    merged = merge_wings(derek, efoil)
    assert snapshot() != before
    wing = undo_merge_wings(palace, merged.activity)
    assert wing == derek
    assert snapshot() == before
    assert found(palace, "Dirk") == derek
    assert undo_merge_wings(palace, merged.activity) is None


def test_what_moved_on_after_a_merge_stays_there(palace, efoil, derek):
    staying, moving = fill(derek)[0], fill(derek)[0]
    merged = merge_wings(derek, efoil)
    third = found(palace, "Third")
    move_room(moving.room, third)
    undo_merge_wings(palace, merged.activity)
    assert Room.objects.get(pk=moving.room_id).wing == third
    assert Room.objects.get(pk=staying.room_id).wing == derek


def test_merges_on_one_another_are_undone_from_the_last(palace, efoil, derek):
    fill(derek)
    first = merge_wings(derek, efoil)
    second = merge_wings(efoil, found(palace, "Third"))
    with pytest.raises(NoWayBack, match="undo that first"):
        undo_merge_wings(palace, first.activity)
    undo_merge_wings(palace, second.activity)
    undo_merge_wings(palace, first.activity)
    assert Room.objects.get().wing == derek

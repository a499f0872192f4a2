"""Refiling: moves rooms and drawers to another wing.

A room contains one conversation, so drawers move to their conversation's room in the target wing,
which is created if missing. Rooms keep their numbers, so pointers to drawers that move with their
room stay valid. Drawers that move alone get a new pointer, and the old one becomes invalid.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db import connection, transaction
from django.db.models import Case, F, IntegerField, Max, Min, QuerySet, Value, When
from django.db.models.functions import Greatest

from language.errors import PalaceError
from palace.curation.empty_places import (
    MoveRecord,
    NoWayBack,
    forget_wings,
    remove_empty_closets,
    remove_empty_wings,
    take_former_slots,
    wing_again,
)
from palace.models import Activity, Closet, Drawer, DrawerQuerySet, Palace, Room, Wing
from palace.storage import next_room_number

UNSORTED = (
    "Nothing can be moved to the unsorted wing: conversations wait there until they are mined. "
    "Choose another wing."
)
OTHER_CONVERSATION = (
    "A room contains one conversation, and some of these drawers belong to another. Move them to "
    "the wing instead: each conversation has a room of its own there."
)
GONE = (
    "This is no longer here: it was merged or deleted meanwhile. Look in its wing, or in the trash."
)
WING_GONE = "That wing is no longer here: it was merged, or is empty. Choose another one."


class BadMove(PalaceError):
    """An invalid move; the message says what to do."""

    code = "bad_move"


@transaction.atomic
def move_room(room: Room, wing: Wing) -> Room:
    """Move a room, including its trashed drawers, to a wing; returns the resulting room.

    If the wing has a room of the same conversation, the two are joined, and the moved drawers get
    new pointers.

    Raises:
        BadMove: the wing is the unsorted one, or either is gone.
    """
    palace = room.palace
    palace.lock()
    _refuse_unusable(wing)
    present = Room.objects.within(palace).select_related("wing").filter(pk=room.pk).first()
    if present is None:
        raise BadMove(GONE)
    room = present
    if room.wing_id != wing.pk:
        count = Drawer.objects.within(palace).filter(room=room).count()
        record = MoveRecord()
        room = _move_room(room, wing, record)
        _note(palace, count, {"wing": str(wing.uuid)}, record.as_json(wing))
    return Room.objects.within(palace).select_related("wing").get(pk=room.pk)


def _move_room(room: Room, wing: Wing, record: MoveRecord) -> Room:
    target = _room_in(room, wing)
    if target is None:
        row = {"id": room.pk, "wing": room.wing_id, "slot": room.slot, "area": room.area}
        record.rooms.append(row | {"is_settled": room.is_settled})
        own = Room.objects.filter(palace=room.palace_id, pk=room.pk)
        own.update(wing=wing, area="", is_settled=True)
    else:
        record.parts.append(_part(room, target))
        join_rooms(room, target)
    record.remove_if_empty(room.wing)
    return target or room


def _part(room: Room, into: Room, keys: Collection[int] | None = None) -> dict[str, Any]:
    return {**described(room, keys), "wing": room.wing_id, "slot": room.slot, "into": into.pk}


@transaction.atomic
def move_drawers(
    palace: Palace, drawers: DrawerQuerySet, wing: Wing, *, made_for: str = ""
) -> Activity | None:
    """Move drawers of a palace to a wing; a room moves as a whole if all its drawers move.

    Args:
        made_for: The area of life for which rules make the wing; undoing the move rejects it.

    Returns:
        The argument for `undo_move`; None if all were there.

    Raises:
        BadMove: the wing is the unsorted one, or gone.
    """
    palace.lock()
    _refuse_unusable(wing)
    count, record = 0, MoveRecord()
    for room, keys in _by_room(palace, drawers):
        if room.wing_id == wing.pk:
            continue
        count += len(keys)
        if _is_all_of(room, keys):
            _move_room(room, wing, record)
        else:
            other = _room_in(room, wing) or _new_room(room, wing)
            record.parts.append(_part(room, other, keys))
            _split_off(room, keys, other)
    undo = record.as_json(wing) | ({"made_for": made_for} if made_for else {})
    return _note(palace, count, {"wing": str(wing.uuid)}, undo)


@transaction.atomic
def undo_move(palace: Palace, activity: Activity) -> tuple[int, list[Wing]]:
    """Undo a move: rooms and drawers go back to where they were, and emptied wings are there again.

    What was moved on since stays there.

    Returns:
        The number of drawers that were moved back, and the wings that they are in; 0 if this was
        undone before.

    Raises:
        NoWayBack: a wing cannot be brought back, or nothing of it is left; nothing was moved.
    """
    palace.lock()
    present = Activity.objects.get(palace=palace, pk=activity.pk)
    if present.detail.get("undone"):
        return 0, []
    record = present.detail.get("undo")
    if record is None:
        raise NoWayBack("It was moved on or deleted since, so nothing was undone.")
    there = Room.objects.within(palace).filter(wing=record["to"])
    rows = {row["id"]: row for row in record["rooms"]}
    whole = there.filter(pk__in=rows)
    parts = [(room, part) for part in record["parts"] if (room := _holder(there, part))]
    homes = {rows[room.pk]["wing"] for room in whole} | {part["wing"] for _, part in parts}
    if not homes:
        raise NoWayBack("It was moved on or deleted since, so nothing was undone.")
    to = {key: wing_again(palace, key) for key in homes}
    moved, slots = 0, {}
    for room, part in parts:
        if not Room.objects.within(palace).filter(pk=part["id"]).exists():
            slots[part["id"]] = part["slot"]
        moved += separate_room(room, to[part["wing"]], part)
    # Last and read again: the parts may have been in these rooms.
    for room in whole.all():
        moved += room.kept_count
        if other := _room_in(room, to[rows[room.pk]["wing"]]):
            join_rooms(room, other)
        else:
            row = rows[room.pk]
            before = {"area": row.get("area", ""), "is_settled": row.get("is_settled", False)}
            whole.filter(pk=room.pk).update(wing=row["wing"], **before)
            slots[room.pk] = row["slot"]
    take_former_slots(palace, slots)
    gone = remove_empty_wings(palace, list(Wing.objects.within(palace).filter(pk=record["to"])))
    present.detail = {name: of for name, of in present.detail.items() if name != "undo"}
    present.detail["undone"] = True
    present.save(update_fields=["detail"])
    palace.reject_areas([record["made_for"]] if "made_for" in record else ())
    forget_wings(palace, [*record.get("wings", ()), *({"uuid": wing.uuid} for wing in gone)])
    where = {"wing": str(next(iter(to.values())).uuid)} if len(to) == 1 else {}
    summary, detail = f"Moved {_counted(moved)} back.", {"drawers": moved, **where}
    kind = Activity.Kind.DRAWERS_MOVED
    Activity.objects.create(palace=palace, kind=kind, summary=summary, detail=detail)
    return moved, list(to.values())


def _holder(rooms: QuerySet[Room], part: Mapping[str, Any]) -> Room | None:
    """The room that the part went to, if drawers of it are there still."""
    room = rooms.select_related("wing").filter(pk=part["into"]).first()
    keys = [int(key) for key in part["drawers"]]
    if room and Drawer.objects.within(room.palace).filter(room=room, pk__in=keys).exists():
        return room
    return None


@transaction.atomic
def move_into(palace: Palace, drawers: DrawerQuerySet, room: Room) -> None:
    """Move drawers to another room of their conversation.

    Raises:
        BadMove: some are of another conversation, or the room waits to be mined.
    """
    palace.lock()
    _refuse_unsorted(room.wing)
    of_this = {"source": room.source, "conversation": room.external_id}
    if drawers.within(palace).exclude(**of_this).exists():
        raise BadMove(OTHER_CONVERSATION)
    count, record = 0, MoveRecord()
    for before, keys in _by_room(palace, drawers):
        if before.pk == room.pk:
            continue
        count += len(keys)
        record.parts.append(_part(before, room, keys))
        if _is_all_of(before, keys):
            join_rooms(before, room)
            record.remove_if_empty(before.wing)
        else:
            _split_off(before, keys, room)
    _note(palace, count, {"room": str(room.uuid)}, record.as_json(room.wing))


def join_rooms(room: Room, other: Room) -> None:
    """Move the drawers of `room` to `other` and delete `room`; the drawers get new pointers.

    The caller locks the palace.
    """
    drawers = Drawer.objects.within(room.palace).filter(room=room)
    _move_rows(room, list(drawers.values_list("pk", flat=True)), other)
    Palace.objects.filter(pk=room.palace_id).update(
        highest_room=Greatest("highest_room", room.number)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM palace_room WHERE palace_id = %s AND id = %s", [room.palace_id, room.pk]
        )


def separate_room(other: Room, wing: Wing, part: Mapping[str, Any]) -> int:
    """Undo `join_rooms` with a record from `described`; drawers that moved on since stay there.

    A room that kept some of its drawers gets the others back. The caller locks the palace.

    Returns:
        The number of drawers outside the trash that were moved back.
    """
    numbers = {int(key): number for key, number in part["drawers"].items()}
    drawers = Drawer.objects.within(other.palace).filter(room=other, pk__in=numbers)
    keys = list(drawers.values_list("pk", flat=True))
    if not keys:
        return 0
    former = Room.objects.within(other.palace).filter(pk=part["id"]).first()
    as_it_was = {"id": part["id"], "uuid": part["uuid"], "area": part.get("area", "")}
    if former is None and not _room_in(other, wing):
        room = _new_room(other, wing, part["number"], **as_it_was)
        # Above all old numbers first, so that none is there twice.
        room.highest_drawer = max(numbers.values())
        room.save(update_fields=["highest_drawer"])
    else:
        room = _room_in(other, wing) or _new_room(other, wing)
    if _is_all_of(other, keys):
        join_rooms(other, room)
    else:
        _split_off(other, keys, room)
    moved = Drawer.objects.within(other.palace).filter(pk__in=keys)
    if room.pk == part["id"]:
        old = (When(pk=key, then=Value(numbers[key])) for key in keys)
        moved.update(number=Case(*old, output_field=IntegerField()))
    return moved.kept().count()


def described(room: Room, keys: Collection[int] | None = None) -> dict[str, Any]:
    """What `separate_room` needs, without words: the number of each drawer by its key.

    Args:
        keys: The drawers that go to another room; by default all.
    """
    drawers = Drawer.objects.within(room.palace).filter(room=room)
    going = drawers if keys is None else drawers.filter(pk__in=keys)
    numbers = dict(going.order_by().values_list("pk", "number"))
    as_it_is = {"id": room.pk, "uuid": str(room.uuid), "number": room.number, "area": room.area}
    return as_it_is | {"drawers": numbers}


def _note(
    palace: Palace, drawers: int, where: dict[str, Any], record: dict[str, Any]
) -> Activity | None:
    """Record the activity with ids instead of names, which a purge would have to remove.

    What goes back to the unsorted wing waits there again, to be filed by mining or by hand.
    """
    if not drawers:
        forget_wings(palace, record.get("wings", ()))
        return None
    other = "another wing" if "wing" in where else "another room"
    to = "a new wing" if "made_for" in record else other
    return Activity.objects.create(
        palace=palace,
        kind=Activity.Kind.DRAWERS_MOVED,
        summary=f"Moved {_counted(drawers)} to {to}.",
        detail={"drawers": drawers, **where, "undo": record},
    )


def _counted(drawers: int) -> str:
    return "a drawer" if drawers == 1 else f"{drawers:,} drawers"


def _split_off(room: Room, keys: Collection[int], other: Room) -> None:
    moving = Drawer.objects.within(room.palace).filter(pk__in=keys)
    highest = moving.aggregate(highest=Max("number"))["highest"]
    _move_rows(room, keys, other)
    left = Room.objects.within(room.palace).filter(pk=room.pk)
    # Numbers are not reused: old pointers become invalid instead of pointing elsewhere.
    left.update(highest_drawer=Greatest("highest_drawer", highest), is_settled=True)
    _set_span(room)


def _move_rows(room: Room, keys: Collection[int], other: Room) -> None:
    moving = Drawer.objects.within(room.palace).filter(pk__in=keys)
    present = Drawer.objects.within(room.palace).filter(room=other)
    highest = present.aggregate(highest=Max("number"))["highest"] or 0
    offset = max(highest, Room.objects.within(room.palace).get(pk=other.pk).highest_drawer)
    _move_closets(room, moving, other)
    moving.update(room=other, number=F("number") + offset)
    before = Room.objects.within(room.palace).get(pk=room.pk)
    # Greatest is null only if both are null.
    Room.objects.within(room.palace).filter(pk=other.pk).update(
        episode_due_at=Greatest("episode_due_at", before.episode_due_at),
        recalled_at=Greatest("recalled_at", before.recalled_at),
    )
    _set_span(other)


def _move_closets(room: Room, moving: DrawerQuerySet, other: Room) -> None:
    """Set the drawers' closets in the other room; closets are moved or created."""
    closets = Closet.objects.within(room.palace)
    topics = closets.filter(room=room, pk__in=moving.values("closet")).order_by("pk")
    for closet in list(topics):
        same = closets.filter(room=other, slug=closet.slug).first()
        staying = Drawer.objects.within(room.palace).filter(closet=closet)
        stays = staying.exclude(pk__in=moving.values("pk")).exists()
        if same is None and not stays:
            closets.filter(pk=closet.pk).update(room=other)
            continue
        same = same or Closet.objects.create(
            palace=room.palace, room=other, slug=closet.slug, title=closet.title
        )
        moving.filter(closet=closet).update(closet=same)
        remove_empty_closets(room.palace, [closet.pk])


def _set_span(room: Room) -> None:
    """Set the room's start and end from its drawers."""
    said = Drawer.objects.within(room.palace).filter(room=room)
    span = said.aggregate(started_at=Min("said_at"), ended_at=Max("said_at"))
    Room.objects.within(room.palace).filter(pk=room.pk).update(**span)


def _new_room(room: Room, wing: Wing, number: int | None = None, **values: Any) -> Room:
    """A room for another part of the same conversation."""
    return Room.objects.create(
        palace=room.palace,
        wing=wing,
        number=number or next_room_number(room.palace),
        is_settled=True,
        **values,
        source=room.source,
        external_id=room.external_id,
        agent=room.agent,
        title=room.title,
        started_at=room.started_at,
        ended_at=room.ended_at,
    )


def _room_in(room: Room, wing: Wing) -> Room | None:
    """The room that its conversation has in a wing."""
    rooms = Room.objects.within(room.palace).filter(wing=wing)
    return rooms.filter(source=room.source, external_id=room.external_id).first()


def _by_room(palace: Palace, drawers: DrawerQuerySet) -> list[tuple[Room, list[int]]]:
    """The rooms of the drawers, each with its drawers' keys."""
    keys: dict[int, list[int]] = {}
    for key, room in drawers.within(palace).order_by("room_id").values_list("pk", "room_id"):
        keys.setdefault(room, []).append(key)
    rooms = Room.objects.within(palace).select_related("palace", "wing").in_bulk(list(keys))
    return [(rooms[room], drawer_keys) for room, drawer_keys in keys.items()]


def _is_all_of(room: Room, keys: Collection[int]) -> bool:
    """Whether these are all drawers of the room, including trashed ones."""
    own = Drawer.objects.within(room.palace).filter(room=room)
    return not own.exclude(pk__in=keys).exists()


def _refuse_unusable(wing: Wing) -> None:
    _refuse_unsorted(wing)
    if not Wing.objects.filter(palace=wing.palace_id, pk=wing.pk).exists():
        raise BadMove(WING_GONE)


def _refuse_unsorted(wing: Wing) -> None:
    if wing.number == Wing.UNSORTED:
        raise BadMove(UNSORTED)

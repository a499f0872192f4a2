"""Refiling: moves rooms and drawers to another wing.

A room contains one conversation, so drawers move to their conversation's room in the target wing,
which is created if missing. Rooms keep their numbers, so pointers to drawers that move with their
room stay valid. Drawers that move alone get a new pointer, and the old one becomes invalid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Case, F, IntegerField, Max, Min, Q, Value, When
from django.db.models.functions import Greatest

from language.errors import PalaceError
from language.storable import LABEL_LENGTH, storable_label
from palace.curation.empty_places import remove_empty_closets, remove_empty_wings
from palace.models import Activity, Closet, Drawer, DrawerQuerySet, Palace, Room, Wing
from palace.storage import next_room_number

_NUMBER = IntegerField()
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
    new numbers. An emptied wing is removed. Idempotent.

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
        room = _move_room(room, wing)
        _note(palace, count, {"wing": str(wing.uuid)})
    return Room.objects.within(palace).select_related("wing").get(pk=room.pk)


def _move_room(room: Room, wing: Wing) -> Room:
    target = _room_in(room, wing)
    if target is None:
        Room.objects.within(room.palace).filter(pk=room.pk).update(wing=wing)
    else:
        join_rooms(room, target)
    remove_empty_wings(room.palace, [room.wing])
    return target or room


@transaction.atomic
def move_drawers(palace: Palace, drawers: DrawerQuerySet, wing: Wing) -> None:
    """Move drawers of a palace to a wing; a room moves as a whole if all its drawers move.

    Raises:
        BadMove: the wing is the unsorted one, or gone.
    """
    palace.lock()
    _refuse_unusable(wing)
    count = 0
    for room, keys in _by_room(palace, drawers):
        if room.wing_id == wing.pk:
            continue
        count += len(keys)
        if _is_all_of(room, keys):
            _move_room(room, wing)
        else:
            _split_off(room, keys, _room_in(room, wing) or _new_room(room, wing))
    _note(palace, count, {"wing": str(wing.uuid)})


@dataclass(frozen=True, slots=True)
class Home:
    """The wing that a drawer or a room was in before it was moved.

    Attributes:
        kind: "drawer" or "room", of which `uuid` is the id.
    """

    wing: UUID
    kind: str
    uuid: UUID

    def __str__(self) -> str:
        return f"{self.wing}.{self.kind}.{self.uuid}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Raises:
            ValueError: `text` is not what `str` makes of one.
        """
        wing, kind, uuid = text.split(".")
        return cls(UUID(wing), kind, UUID(uuid))


# Kind and id of drawers, and of rooms with all their drawers.
Chosen = Sequence[tuple[str, UUID]]


def chosen_drawers(palace: Palace, chosen: Chosen) -> DrawerQuerySet:
    in_rooms = Q(room__palace=palace, room__uuid__in=_ids("room", chosen))
    return Drawer.objects.within(palace).filter(Q(uuid__in=_ids("drawer", chosen)) | in_rooms)


def _ids(wanted: str, chosen: Chosen) -> list[UUID]:
    return [uuid for kind, uuid in chosen if kind == wanted]


def homes_of(palace: Palace, chosen: Chosen, *, besides: Wing) -> list[Home]:
    """Of what does not lie in one wing already, nor in the trash."""
    drawers = Drawer.objects.within(palace).kept().filter(uuid__in=_ids("drawer", chosen))
    rooms = Room.objects.within(palace).filter(uuid__in=_ids("room", chosen), kept_count__gt=0)
    found = [
        *(Home(*row) for row in drawers.values_list("room__wing__uuid", Value("drawer"), "uuid")),
        *(Home(*row) for row in rooms.values_list("wing__uuid", Value("room"), "uuid")),
    ]
    return [home for home in found if home.wing != besides.uuid]


def can_go_back(palace: Palace, homes: Collection[Home]) -> bool:
    """Whether their wings are still there, and none of the rooms was joined to another."""
    wings = {home.wing for home in homes}
    rooms = {home.uuid for home in homes if home.kind == "room"}
    to_go_to = Wing.objects.within(palace).exclude(number=Wing.UNSORTED).filter(uuid__in=wings)
    present = Room.objects.within(palace).filter(uuid__in=rooms)
    return to_go_to.count() == len(wings) and present.count() == len(rooms)


@transaction.atomic
def move_back(palace: Palace, homes: Collection[Home]) -> int:
    """Move each to its home; returns the number of drawers that were elsewhere.

    Raises:
        BadMove: a wing is gone, and nothing was moved.
    """
    palace.lock()
    chosen: defaultdict[UUID, list[tuple[str, UUID]]] = defaultdict(list)
    for home in homes:
        chosen[home.wing].append((home.kind, home.uuid))
    wings = Wing.objects.within(palace).filter(uuid__in=chosen)
    if wings.count() < len(chosen):
        raise BadMove(WING_GONE)
    moved = 0
    for wing in wings:
        drawers = chosen_drawers(palace, chosen[wing.uuid]).kept()
        moved += drawers.exclude(room__wing=wing).count()
        move_drawers(palace, drawers, wing)
    return moved


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
    count = 0
    for before, keys in _by_room(palace, drawers):
        if before.pk == room.pk:
            continue
        count += len(keys)
        if _is_all_of(before, keys):
            join_rooms(before, room)
            remove_empty_wings(palace, [before.wing])
        else:
            _split_off(before, keys, room)
    _note(palace, count, {"room": str(room.uuid)})


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


def separate_room(other: Room, wing: Wing, joined: Mapping[str, Any]) -> None:
    """Undo `join_rooms` with a record from `described`; drawers that moved on since stay there.

    The caller locks the palace.
    """
    numbers = {int(key): number for key, number in joined["drawers"].items()}
    drawers = Drawer.objects.within(other.palace).filter(room=other, pk__in=numbers)
    keys = list(drawers.values_list("pk", flat=True))
    if not keys:
        return
    room = _new_room(other, wing, joined["number"], id=joined["id"], uuid=joined["uuid"])
    # Above all old numbers first, so that none is there twice.
    room.highest_drawer = max(numbers.values())
    room.save(update_fields=["highest_drawer"])
    _split_off(other, keys, room)
    moved = Drawer.objects.within(other.palace).filter(pk__in=keys)
    moved.update(
        number=Case(*(When(pk=key, then=Value(numbers[key])) for key in keys), output_field=_NUMBER)
    )


def described(room: Room) -> dict[str, Any]:
    """What `separate_room` needs, without words: the number of each drawer by its key."""
    drawers = Drawer.objects.within(room.palace).filter(room=room)
    numbers = dict(drawers.order_by().values_list("pk", "number"))
    return {"id": room.pk, "uuid": str(room.uuid), "number": room.number, "drawers": numbers}


@transaction.atomic
def rename(place: Room | Closet, title: str) -> str:
    """Give a room or closet another title; returns the one before.

    Mining keeps the titles of filed rooms, and finds a closet by its slug, which stays.

    Raises:
        BadMove: the title is empty or too long, or the place is gone.
    """
    place.palace.lock()
    if len(title) > LABEL_LENGTH:
        raise BadMove(f"This title is too long. Write at most {LABEL_LENGTH} characters.")
    title = storable_label(" ".join(title.split()))
    if not title:
        raise BadMove(f"A {place._meta.verbose_name} needs a title. Write one.")
    before, place.title = place.title, title
    if not type(place).objects.within(place.palace).filter(pk=place.pk).update(title=title):
        raise BadMove(GONE)
    return before


def _note(palace: Palace, drawers: int, where: dict[str, str]) -> None:
    """Record the activity with ids instead of names, which a purge would have to remove."""
    if drawers:
        what = "a drawer" if drawers == 1 else f"{drawers:,} drawers"
        Activity.objects.create(
            palace=palace,
            kind=Activity.Kind.DRAWERS_MOVED,
            summary=f"Moved {what} to another {'wing' if 'wing' in where else 'room'}.",
            detail={"drawers": drawers, **where},
        )


def _split_off(room: Room, keys: Collection[int], other: Room) -> None:
    moving = Drawer.objects.within(room.palace).filter(pk__in=keys)
    highest = moving.aggregate(highest=Max("number"))["highest"]
    _move_rows(room, keys, other)
    left = Room.objects.within(room.palace).filter(pk=room.pk)
    # Numbers are not reused: old pointers become invalid instead of pointing elsewhere.
    left.update(highest_drawer=Greatest("highest_drawer", highest))
    _set_span(room)


def _move_rows(room: Room, keys: Collection[int], other: Room) -> None:
    moving = Drawer.objects.within(room.palace).filter(pk__in=keys)
    present = Drawer.objects.within(room.palace).filter(room=other)
    highest = present.aggregate(highest=Max("number"))["highest"] or 0
    offset = max(highest, Room.objects.get(pk=other.pk).highest_drawer)
    _move_closets(room, moving, other)
    moving.update(room=other, number=F("number") + offset)
    before = Room.objects.get(pk=room.pk)
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

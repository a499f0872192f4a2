"""The floor plan: each wing a corridor, with its rooms along it in the order they were placed.

A room is placed when the plan is first drawn after it was filed, the oldest first, at the end of
its wing's corridor. It keeps its place for as long as it stays in the wing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from math import sqrt
from operator import or_
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Exists, Max, OuterRef, Q

from palace.models import Drawer, Entity, Evidence, Mention, Palace, Room, Wing
from palace.queries.places import WingRow

# Rooms of one floor of a wing, half of them on each side of the corridor.
FLOOR = 24
# Lengths in units of the drawing.
CELL, WALL, CORRIDOR, MARGIN = 52, 48, 14, 4
HEIGHT = 2 * WALL + CORRIDOR + 2 * MARGIN
# Area by drawers: a side grows with their square root, up to the wall.
LEAST_SIDE, SIDE_A_DRAWER = 20.0, 4.0
# A room whose last message is no older than this has the tint of that place in the list.
AGES = (timedelta(days=30), timedelta(days=90), timedelta(days=365), timedelta(days=3 * 365))

_PLACE = """
UPDATE palace_room SET slot = placed.slot FROM (
    SELECT id, row_number() OVER (PARTITION BY wing_id ORDER BY started_at, number) - 1 + coalesce(
        (SELECT max(slot) + 1 FROM palace_room other
            WHERE other.palace_id = %(palace)s AND other.wing_id = new.wing_id), 0) AS slot
    FROM palace_room new WHERE palace_id = %(palace)s AND slot IS NULL
) placed WHERE palace_room.palace_id = %(palace)s AND palace_room.id = placed.id
"""


@dataclass(frozen=True, slots=True)
class PlanRoom:
    """A room as drawn: a square with its left upper corner at `x`, `y`.

    Attributes:
        age: Index into `AGES` of its tint; `len(AGES)` for the oldest.
        pins: Places, from 1, of the hits that lie in it.
    """

    room: Room
    drawers: int
    facts: int
    x: float
    y: float
    side: float
    age: int
    pins: tuple[int, ...]

    @property
    def centre(self) -> tuple[float, float]:
        return self.x + self.side / 2, self.y + self.side / 2


@dataclass(frozen=True, slots=True)
class Doorway:
    """A line between two neighbouring rooms in which the same people are mentioned."""

    x: float
    y: float
    length: float


@dataclass(frozen=True, slots=True)
class PlanWing:
    """One floor of a wing.

    Attributes:
        floor: From 0, the oldest; `floors` is their number.
        width: Of the drawing; its height is `HEIGHT`.
    """

    row: WingRow
    floor: int
    floors: int
    width: int
    rooms: tuple[PlanRoom, ...]
    doorways: tuple[Doorway, ...]


def floor_plan(
    palace: Palace,
    rows: Sequence[WingRow],
    now: datetime,
    *,
    pins: Mapping[int, Sequence[int]] | None = None,
    floors: Mapping[int, int] | None = None,
) -> list[PlanWing]:
    """The plan of these wings, in their order; of each the newest floor.

    Args:
        pins: Places of hits by key of the room.
        floors: Other floors to show, by key of the wing.
    """
    place_rooms(palace)
    tops = _tops(palace, [row.wing for row in rows])
    shown = {
        key: min((floors or {}).get(key, top // FLOOR), top // FLOOR) for key, top in tops.items()
    }
    rooms = _rooms(palace, shown)
    people = _people(palace, [room.pk for room in rooms])
    facts = _facts(palace, [room.pk for room in rooms])
    by_wing: dict[int, list[Room]] = defaultdict(list)
    for room in rooms:
        by_wing[room.wing_id].append(room)
    return [
        _drawn(row, shown[row.wing.pk], tops[row.wing.pk], by_wing, people, facts, pins or {}, now)
        for row in rows
        if row.wing.pk in tops
    ]


def place_rooms(palace: Palace) -> None:
    """Give each room that has none a place at the end of its wing's corridor."""
    if not Room.objects.within(palace).filter(slot=None).exists():
        return
    with transaction.atomic():
        palace.lock()
        with connection.cursor() as cursor:
            cursor.execute(_PLACE, {"palace": palace.pk})


def _tops(palace: Palace, wings: Iterable[Wing]) -> dict[int, int]:
    """The last place with a kept drawer, by key of the wing."""
    rooms = _kept(palace).filter(wing__in=[wing.pk for wing in wings]).order_by()
    return dict(rooms.values_list("wing").annotate(top=Max("slot")))


def _kept(palace: Palace) -> Any:
    drawers = Drawer.objects.kept().filter(palace=OuterRef("palace"), room=OuterRef("pk"))
    return Room.objects.within(palace).filter(Exists(drawers.order_by()))


def _rooms(palace: Palace, floors: Mapping[int, int]) -> list[Room]:
    if not floors:
        return []
    on_floor = (
        Q(wing=wing, slot__gte=floor * FLOOR, slot__lt=(floor + 1) * FLOOR)
        for wing, floor in floors.items()
    )
    rooms = _kept(palace).filter(reduce(or_, on_floor)).select_related("wing")
    counted = rooms.annotate(
        drawer_count=Count("drawers", filter=Q(drawers__palace=palace, drawers__trashed_at=None))
    )
    return list(counted.order_by("wing", "slot"))


def _people(palace: Palace, rooms: Sequence[int]) -> dict[int, set[int]]:
    """Keys of the people mentioned in each room."""
    mentions = Mention.objects.filter(
        palace=palace,
        drawer__room__in=rooms,
        drawer__trashed_at=None,
        entity__kind=Entity.Kind.PERSON,
    )
    people: dict[int, set[int]] = defaultdict(set)
    for room, entity in mentions.values_list("drawer__room", "entity").distinct():
        people[room].add(entity)
    return people


def _facts(palace: Palace, rooms: Sequence[int]) -> dict[int, int]:
    """The number of active facts with a source in each room."""
    evidence = Evidence.objects.filter(
        palace=palace,
        drawer__room__in=rooms,
        drawer__trashed_at=None,
        fact__retired_at=None,
    )
    counted = evidence.order_by().values_list("drawer__room")
    return dict(counted.annotate(facts=Count("fact", distinct=True)))


def _drawn(
    row: WingRow,
    floor: int,
    top: int,
    by_wing: Mapping[int, Sequence[Room]],
    people: Mapping[int, set[int]],
    facts: Mapping[int, int],
    pins: Mapping[int, Sequence[int]],
    now: datetime,
) -> PlanWing:
    rooms = tuple(
        _square(room, facts.get(room.pk, 0), tuple(pins.get(room.pk, ())), now)
        for room in by_wing[row.wing.pk]
    )
    columns = max((room.room.slot or 0) % FLOOR // 2 for room in rooms) + 1 if rooms else 1
    return PlanWing(
        row,
        floor,
        top // FLOOR + 1,
        columns * CELL + 2 * MARGIN,
        rooms,
        tuple(_doorways(rooms, people)),
    )


def _square(room: Any, facts: int, pins: tuple[int, ...], now: datetime) -> PlanRoom:
    """Even places lie above the corridor, odd ones below it."""
    column, is_below = divmod(room.slot % FLOOR, 2)
    side = min(LEAST_SIDE + SIDE_A_DRAWER * sqrt(room.drawer_count - 1), WALL)
    x = MARGIN + column * CELL + (CELL - side) / 2
    y = MARGIN + WALL + CORRIDOR if is_below else MARGIN + WALL - side
    age = sum(now - room.ended_at > limit for limit in AGES)
    return PlanRoom(
        room, room.drawer_count, facts, round(x, 1), round(y, 1), round(side, 1), age, pins
    )


def _doorways(rooms: Sequence[PlanRoom], people: Mapping[int, set[int]]) -> Iterator[Doorway]:
    at = {room.room.slot: room for room in rooms}
    for room in rooms:
        neighbour = at.get((room.room.slot or 0) + 2)
        if neighbour is None or not people[room.room.pk] & people[neighbour.room.pk]:
            continue
        start = room.x + room.side
        # Near the corridor, where both rooms have a wall.
        is_below = (room.room.slot or 0) % 2
        y = room.y + LEAST_SIDE / 2 if is_below else room.y + room.side - LEAST_SIDE / 2
        yield Doorway(start, round(y, 1), round(neighbour.x - start, 1))

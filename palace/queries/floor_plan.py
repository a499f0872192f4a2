"""The floor plan: each wing a corridor, with its rooms along it in the order they were placed.

A room is placed when the plan is first drawn after it was filed, the oldest first, at the end of
its wing's corridor. It keeps its place for as long as it stays in the wing. A wing of more than
`FLOOR` rooms has several floors; a palace of more than `ROOMS_DRAWN` folds its last wings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from math import log2
from typing import Any, cast

from django.db import connection, transaction
from django.db.models import Max, Q
from django.utils import timezone

from isolation.raw_sql import columns, fetch_rows, read_instance
from palace.models import Entity, Palace, Room
from palace.queries import each_until_changed
from palace.queries.places import WingRow

# Rooms of one floor of a wing, half of them on each side of the corridor.
FLOOR = 24
# What a page draws at most, where the frame of a wing counts as many rooms.
ROOMS_DRAWN, ROOMS_A_FRAME = 144, 3
# Lengths in units of the drawing: the width of a room, of the corridor, and of doors.
CELL, CORRIDOR, MARGIN, DOOR = 48, 16, 2, 10
# Area by drawers: each doubling of them makes a room as much deeper, up to some 14,000.
LEAST_DEPTH, MOST_DEPTH, DEPTH_A_DOUBLING = 26.0, 64.0, 2.75
# Where every corridor begins: those of neighbouring wings meet, and no deep room moves others.
HALL = MARGIN + MOST_DEPTH
# A room whose last message is no older than this has the tint of that place in the list.
AGES = (timedelta(days=30), timedelta(days=90), timedelta(days=365), timedelta(days=3 * 365))

# What a plan does not draw of its rooms.
_UNDRAWN = frozenset(
    "palace_id number source external_id agent highest_drawer reviewed_at recalled_at created_at"
    " area stored_count stored_bytes kept_bytes episode_due_at".split()
)

# Right after an import the planner takes the rooms for a few, and would go through all of them for
# each: what is materialized is read once.
_PLACE = """
WITH taken AS MATERIALIZED (
    SELECT wing_id, max(slot) + 1 AS free FROM palace_room
    WHERE palace_id = %(palace)s AND slot IS NOT NULL GROUP BY wing_id
), placed AS MATERIALIZED (
    SELECT new.id, coalesce(taken.free, 0) - 1 + row_number() OVER (
        PARTITION BY new.wing_id ORDER BY new.started_at, new.number
    ) AS slot
    FROM palace_room new LEFT JOIN taken ON taken.wing_id = new.wing_id
    WHERE new.palace_id = %(palace)s AND new.slot IS NULL
)
UPDATE palace_room SET slot = placed.slot FROM placed
WHERE palace_room.palace_id = %(palace)s AND palace_room.id = placed.id
"""
_SLOTS = "SELECT id, wing_id, slot FROM palace_room WHERE palace_id = %s AND id = ANY(%s)"
# Drawer by drawer: the planner would rather read every mention there is.
_PEOPLE = """
SELECT DISTINCT drawer.room_id, mention.entity_id FROM palace_drawer drawer
CROSS JOIN LATERAL (
    SELECT entity_id FROM palace_mention
    WHERE palace_id = %(palace)s AND drawer_id = drawer.id OFFSET 0
) mention
JOIN palace_entity entity ON entity.palace_id = %(palace)s AND entity.id = mention.entity_id
    AND entity.kind = ANY(%(kinds)s)
WHERE drawer.palace_id = %(palace)s AND drawer.room_id = ANY(%(rooms)s)
    AND drawer.trashed_at IS NULL AND drawer.said_at <= %(moment)s
"""
_FACTS = """
SELECT drawer.room_id, count(DISTINCT fact.id) FROM palace_drawer drawer
JOIN palace_evidence evidence
    ON evidence.palace_id = drawer.palace_id AND evidence.drawer_id = drawer.id
JOIN palace_fact fact ON fact.palace_id = evidence.palace_id AND fact.id = evidence.fact_id
WHERE drawer.palace_id = %(palace)s AND drawer.room_id = ANY(%(rooms)s)
    AND drawer.trashed_at IS NULL AND drawer.said_at <= %(moment)s AND fact.retired_at IS NULL
GROUP BY drawer.room_id
"""


@dataclass(frozen=True, slots=True)
class PlanRoom:
    """A room as drawn, with its left upper corner at `x`, `y`; all are `CELL` wide.

    Attributes:
        drawers: Those said until the day of the plan.
        age: Index into `AGES` of its tint; `len(AGES)` for the oldest.
        pins: Places, from 1, of the hits that lie in it.
        is_later: Nothing in it was said until the day of the plan.
    """

    room: Room
    drawers: int
    facts: int
    x: int
    y: float
    depth: float
    age: int
    pins: tuple[int, ...]
    is_later: bool

    @property
    def centre(self) -> tuple[int, float]:
        return self.x + CELL // 2, round(self.y + self.depth / 2, 1)


@dataclass(frozen=True, slots=True)
class PlanWing:
    """One floor of a wing.

    Attributes:
        floor: From 1, the oldest; `floors` is their number.
        doors: The doors to the corridor, a path of an SVG.
        doorways: The doorways between neighbouring rooms in which the same people are named.
        rooms: Empty where the wing is folded.
        pins_elsewhere: Places of hits on its other floors, or in it if it is folded.
    """

    row: WingRow
    floor: int
    floors: int
    width: int
    height: float
    rooms: tuple[PlanRoom, ...]
    doors: str
    doorways: str
    pins_elsewhere: tuple[int, ...]

    @property
    def is_folded(self) -> bool:
        return not self.rooms


@dataclass(frozen=True, slots=True)
class PlanView:
    """The options of a plan.

    Attributes:
        until: The plan is drawn as of this moment; None: now.
        lit: Keys of the rooms of the hits, best first; a room may come several times,
            and 0 stands for a hit without one.
        floors: Floors to show, from 1, by key of the wing; by default the one of the best hit,
            else the newest.
    """

    until: datetime | None = None
    lit: Sequence[int] = ()
    floors: Mapping[int, int] = field(default_factory=dict)


def floor_plan(palace: Palace, rows: Sequence[WingRow], view: PlanView) -> list[PlanWing]:
    """The plan of these wings, in their order."""
    if any(row.last_slot is None for row in rows):
        give_slots(palace)
    moment = view.until or timezone.now()
    lit = _lit_rooms(palace, view.lit)
    keys = _unfolded(rows, {wing for wing, _ in lit.values()})
    tops = _tops(palace, [row for row in rows if row.wing.pk in keys], view.until)
    floors = {key: _floor(key, tops[key], view.floors, lit) for key in keys if key in tops}
    rooms = _rooms(palace, floors, view.until)
    drawing = _Drawing(
        moment=moment,
        rooms=_by_wing(rooms),
        joined=_joined_now(palace, rooms) if view.until is None else _joined(palace, rooms, moment),
        facts=_facts(palace, [room.pk for room in rooms], moment),
        pins=_pins(view.lit),
        lit=lit,
        below=max((_depth(room) for room in rooms if _is_below(room)), default=0),
    )
    return [
        drawing.wing(row, floors.get(row.wing.pk, 1), tops.get(row.wing.pk, (0, 0))) for row in rows
    ]


def give_slots(palace: Palace) -> None:
    """Give each room that has none a place at the end of its wing's corridor."""
    if not Room.objects.within(palace).filter(slot=None).exists():
        return
    with transaction.atomic():
        palace.lock()
        with connection.cursor() as cursor:
            cursor.execute(_PLACE, {"palace": palace.pk})


def _pins(lit: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """Places of the hits, from 1, by key of their room."""
    pins: defaultdict[int, list[int]] = defaultdict(list)
    for place, room in enumerate(lit, start=1):
        pins[room].append(place)
    return {room: tuple(places) for room, places in pins.items()}


def _lit_rooms(palace: Palace, lit: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Wing and floor of each room that was hit, in the order of the hits."""
    if not lit:
        return {}
    rooms = fetch_rows(_SLOTS, [palace.pk, [*set(lit)]], prepared=True)
    places = {pk: (wing, slot or 0) for pk, wing, slot in rooms}
    return {
        room: (places[room][0], places[room][1] // FLOOR + 1)
        for room in dict.fromkeys(lit)
        if room in places
    }


def _unfolded(rows: Sequence[WingRow], lit: Collection[int]) -> list[int]:
    """Keys of the wings that are drawn: those with hits, then the first ones."""
    drawn: list[int] = []
    left = ROOMS_DRAWN
    for row in sorted(rows, key=lambda row: row.wing.pk not in lit):
        left -= ROOMS_A_FRAME + min(row.rooms, FLOOR)
        if left < 0 and drawn:
            break
        drawn.append(row.wing.pk)
    return drawn


def _tops(
    palace: Palace, rows: Sequence[WingRow], until: datetime | None
) -> dict[int, tuple[int, int]]:
    """The last place with a kept drawer, and the last that began by then, by key of the wing."""
    known = {row.wing.pk: row.last_slot for row in rows if row.last_slot is not None}
    if until is None and len(known) == len(rows):
        return {wing: (slot, slot) for wing, slot in known.items()}
    kept = Room.objects.within(palace).filter(kept_count__gt=0).order_by()
    rooms = kept.filter(wing__in=[row.wing.pk for row in rows])
    begun = Max("slot", filter=Q(started_at__lte=until or timezone.now()), default=0)
    tops = rooms.values_list("wing").annotate(top=Max("slot"), begun=begun)
    return {wing: (top, begun) for wing, top, begun in tops}


def _floor(
    wing: int,
    tops: tuple[int, int],
    wanted: Mapping[int, int],
    lit: Mapping[int, tuple[int, int]],
) -> int:
    """The floor of a wing that is shown, from 1."""
    best = next((floor for other, floor in lit.values() if other == wing), None)
    floor = wanted.get(wing) or best or tops[1] // FLOOR + 1
    return min(max(floor, 1), tops[0] // FLOOR + 1)


def _rooms(palace: Palace, floors: Mapping[int, int], until: datetime | None) -> list[Room]:
    """The rooms on these floors, each with `by_then`, the drawers said until then; None: all."""
    if not floors:
        return []
    given = {"palace": palace.pk, "until": until, "wings": [*floors], "floors": [*floors.values()]}
    rooms = []
    for by_then, *values in fetch_rows(_rooms_on_floors(), given, prepared=True):
        room = cast("Room", read_instance(Room, iter(values), _UNDRAWN))
        setattr(room, "by_then", by_then)  # noqa: B010 - the model has no such field.
        rooms.append(room)
    return rooms


@cache
def _rooms_on_floors() -> str:
    """Written out: Django takes longer to put it together than the database to answer it."""
    return f"""
        SELECT CASE WHEN coalesce(room.ended_at <= %(until)s, true) THEN room.kept_count ELSE (
            SELECT count(*) FROM palace_drawer
            WHERE palace_id = %(palace)s AND room_id = room.id AND trashed_at IS NULL
                AND said_at <= %(until)s
        ) END, {columns(Room, "room", _UNDRAWN)}
        FROM unnest(%(wings)s::bigint[], %(floors)s::int[]) AS shown (wing, floor)
        JOIN palace_room room ON room.palace_id = %(palace)s AND room.wing_id = shown.wing
            AND room.slot BETWEEN (shown.floor - 1) * {FLOOR} AND shown.floor * {FLOOR} - 1
        WHERE room.kept_count > 0 ORDER BY room.wing_id, room.slot
    """  # noqa: S608 - put together from constants.


def _by_wing(rooms: Iterable[Room]) -> dict[int, list[Room]]:
    by_wing: defaultdict[int, list[Room]] = defaultdict(list)
    for room in rooms:
        by_wing[room.wing_id].append(room)
    return by_wing


def _joined_now(palace: Palace, rooms: Sequence[Room]) -> Collection[int]:
    # Floor by floor: each search shows other floors of a few wings.
    floors = {f"doorways {[room.pk for room in each]}": each for each in _by_wing(rooms).values()}

    def compute(names: list[str]) -> dict[str, list[int]]:
        joined = set(_joined(palace, [room for n in names for room in floors[n]], timezone.now()))
        return {n: [room.pk for room in floors[n] if room.pk in joined] for n in names}

    return {pk for each in each_until_changed(palace, floors, compute).values() for pk in each}


def _joined(palace: Palace, rooms: Sequence[Room], moment: datetime) -> list[int]:
    """Keys of the rooms that have people in common with the next one on their side."""
    people = _people(palace, [room.pk for room in rooms], moment)
    at = {(room.wing_id, room.slot or 0): room.pk for room in rooms}
    following = ((pk, at.get((wing, slot + 2), 0)) for (wing, slot), pk in at.items())
    return [pk for pk, other in following if not people[pk].isdisjoint(people[other])]


def _people(palace: Palace, rooms: Sequence[int], moment: datetime) -> defaultdict[int, set[int]]:
    """Keys of the people mentioned in each room."""
    people: defaultdict[int, set[int]] = defaultdict(set)
    given = {"rooms": list(rooms), "moment": moment, "kinds": list(map(str, Entity.BEINGS))}
    for room, entity in fetch_rows(_PEOPLE, {"palace": palace.pk, **given}):
        people[room].add(entity)
    return people


def _facts(palace: Palace, rooms: Sequence[int], moment: datetime) -> dict[int, int]:
    """The number of active facts with a source in each room."""
    given = {"palace": palace.pk, "rooms": list(rooms), "moment": moment}
    return dict(fetch_rows(_FACTS, given))


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What was read for a plan, by key of the wing or room.

    Attributes:
        joined: The rooms with a doorway to the next one on their side.
        below: The depth of the deepest room below a corridor.
    """

    moment: datetime
    rooms: Mapping[int, Sequence[Room]]
    joined: Collection[int]
    facts: Mapping[int, int]
    pins: Mapping[int, tuple[int, ...]]
    lit: Mapping[int, tuple[int, int]]
    below: float

    def wing(self, row: WingRow, floor: int, tops: tuple[int, int]) -> PlanWing:
        rooms = self.rooms.get(row.wing.pk, ())
        drawn = tuple(map(self._room, rooms))
        columns = max((_column(room) for room in rooms), default=0) + 1
        return PlanWing(
            row=row,
            floor=floor,
            floors=tops[0] // FLOOR + 1,
            width=columns * CELL + 2 * MARGIN,
            height=round(HALL + CORRIDOR + self.below + MARGIN, 1),
            rooms=drawn,
            doors="".join(map(_door, drawn)),
            doorways="".join(self._doorways(drawn)),
            pins_elsewhere=self._pins_elsewhere(row.wing.pk, {room.pk for room in rooms}),
        )

    def _room(self, room: Any) -> PlanRoom:
        depth = _depth(room, room.by_then or room.kept_count)
        return PlanRoom(
            room=room,
            drawers=room.by_then or room.kept_count,
            facts=self.facts.get(room.pk, 0),
            x=MARGIN + _column(room) * CELL,
            y=round(HALL + CORRIDOR if _is_below(room) else HALL - depth, 1),
            depth=depth,
            age=sum(self.moment - room.ended_at > limit for limit in AGES),
            pins=self.pins.get(room.pk, ()),
            is_later=not room.by_then,
        )

    def _doorways(self, rooms: Sequence[PlanRoom]) -> Iterator[str]:
        at = {room.room.slot: room for room in rooms}
        for room in rooms:
            neighbour = at.get((room.room.slot or 0) + 2)
            if neighbour is not None and room.room.pk in self.joined:
                # Near the corridor, where both rooms have a wall.
                y = room.y + 7 if _is_below(room.room) else room.y + room.depth - 7 - DOOR
                yield f"M{neighbour.x} {round(y, 1)}v{DOOR}"

    def _pins_elsewhere(self, wing: int, drawn: Collection[int]) -> tuple[int, ...]:
        others = (
            room for room, (other, _) in self.lit.items() if other == wing and room not in drawn
        )
        return tuple(sorted(place for room in others for place in self.pins[room]))


def _column(room: Room) -> int:
    return (room.slot or 0) % FLOOR // 2


def _is_below(room: Room) -> bool:
    """Even places lie above the corridor, odd ones below it."""
    return (room.slot or 0) % 2 == 1


def _depth(room: Any, drawers: int | None = None) -> float:
    """By default with all of its drawers, which is the most."""
    grown = LEAST_DEPTH + DEPTH_A_DOUBLING * log2(drawers or room.kept_count)
    return round(min(grown, MOST_DEPTH), 1)


def _door(room: PlanRoom) -> str:
    """An opening in its wall to the corridor, part of an SVG's path."""
    y = room.y if _is_below(room.room) else round(room.y + room.depth, 1)
    return f"M{room.centre[0] - DOOR // 2} {y}h{DOOR}"

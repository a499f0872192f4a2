"""Wings, rooms, closets and drawers of one palace with their counts, without the trash."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal, cast

from django.db.models import Count, Exists, F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Left

from isolation.raw_sql import Part, all_but, columns, columns_of, fetch_rows, read_instance
from palace.models import Closet, Drawer, DrawerQuerySet, Palace, Passage, Pointer, Room, Wing

PREVIEW_LENGTH = 300
# What lists show of a drawer and its place, a third of the columns.
_LISTED = (
    *("uuid", "palace", "number", "role", "speaker", "text", "tags", "said_at", "trashed_at"),
    *("room__number", "room__title", "room__wing__number", "room__wing__name", "closet__title"),
)

# What a `WingRow` says of wings that are not empty, by their key.
_CONTENTS = """
SELECT wing_id, sum(rooms)::bigint AS rooms, sum(messages)::bigint AS drawers,
    array_agg(source) AS sources,
    CASE WHEN bool_and(all_placed) THEN max(last_slot) END AS last_slot
FROM (
    SELECT wing_id, source, count(*) AS rooms, sum(kept_count) AS messages,
        max(slot) AS last_slot, bool_and(slot IS NOT NULL) AS all_placed
    FROM palace_room WHERE palace_id = %(palace)s AND kept_count > 0
    GROUP BY wing_id, source
) by_source GROUP BY wing_id
"""
_CONTENTS_OF_ONE = _CONTENTS.replace("> 0", "> 0 AND wing_id = %(wing)s")


@dataclass(frozen=True, slots=True)
class WingRow:
    """
    Attributes:
        sources: Where its rooms come from.
        last_slot: The highest of its rooms; None if it is unknown, or one has no slot yet.
    """

    wing: Wing
    rooms: int
    drawers: int
    sources: Sequence[str] = ()
    last_slot: int | None = None


def wing_rows(palace: Palace) -> list[WingRow]:
    """The wings that are not empty, by name; the unsorted one comes last."""
    rows = [_read_wing(*row) for row in fetch_rows(_wings(), {"palace": palace.pk}, prepared=True)]
    return sorted(
        rows, key=lambda row: (row.wing.number == Wing.UNSORTED, row.wing.name.casefold())
    )


@cache
def _wings() -> str:
    """Written out: Django takes longer to put it together than the database to answer it."""
    return f"""
        SELECT c.rooms, c.drawers, c.sources, c.last_slot, {columns(Wing, "w")}
        FROM ({_CONTENTS}) c
        JOIN palace_wing w ON w.palace_id = %(palace)s AND w.id = c.wing_id
        ORDER BY w.number
    """  # noqa: S608 - put together from constants.


def _read_wing(
    rooms: int, drawers: int, sources: list[str], last_slot: int | None, *wing: Any
) -> WingRow:
    return WingRow(
        cast("Wing", read_instance(Wing, iter(wing))), rooms, drawers, sources, last_slot
    )


def wing_row(wing: Wing) -> WingRow:
    """One wing, which may be empty."""
    contents = _contents(wing.palace, wing).get(wing.pk, (0, 0))
    return WingRow(wing, *contents)


def emptied_wings(palace: Palace, rows: Sequence[WingRow]) -> list[Wing]:
    """The wings besides these that are empty and stay, since they have a keeping rule."""
    ruled = Wing.objects.within(palace).exclude(kept_months=None, never=[])
    empty = ruled.exclude(pk__in=[row.wing.pk for row in rows])
    return sorted(empty, key=lambda wing: wing.name.casefold())


def wing_counts(palace: Palace) -> dict[int, tuple[int, int]]:
    """Rooms and drawers of each wing that is not empty, by its key."""
    return {wing: (rooms, drawers) for wing, (rooms, drawers, *_) in _contents(palace).items()}


def _contents(palace: Palace, wing: Wing | None = None) -> dict[int, Any]:
    """What a `WingRow` says of each wing that is not empty, or of this one, by its key."""
    statement = _CONTENTS_OF_ONE if wing else _CONTENTS
    given = {"palace": palace.pk, **({"wing": wing.pk} if wing else {})}
    return {key: tuple(rest) for key, *rest in fetch_rows(statement, given, prepared=True)}


def rooms_of(wing: Wing) -> QuerySet[Room]:
    """Newest first, each with `drawer_count`."""
    rooms: QuerySet[Room] = (
        Room.objects.filter(palace=wing.palace_id, wing=wing, kept_count__gt=0)
        .annotate(drawer_count=F("kept_count"))
        .order_by("-started_at", "-number")
    )
    return rooms


def rooms_with_closets(wing: Wing) -> QuerySet[Room]:
    """As `rooms_of`, each with `closet_count`, which takes a look at each of their messages."""
    kept = _kept_where(wing.palace_id, room=OuterRef("pk"))
    return rooms_of(wing).annotate(
        closet_count=_count(kept.exclude(closet=None), "room", of="closet")
    )


def unfiled_rooms(palace: Palace, before: datetime) -> QuerySet[Room]:
    """Rooms that wait in the unsorted wing since before a moment, the oldest first."""
    kept = _kept_where(palace.pk, room=OuterRef("pk"))
    waiting = Exists(kept.filter(filed_at__lt=before))
    rooms = Room.objects.within(palace).filter(waiting, wing__number=Wing.UNSORTED)
    return _counted(rooms, kept)


def unembedded_rooms(palace: Palace) -> QuerySet[Room]:
    """Rooms with messages that could not be embedded, each with the number of these."""
    missing = Passage.objects.filter(
        palace=palace, space__active=True, embedding=None, drawer__trashed_at=None
    )
    keys = Drawer.objects.within(palace).kept().filter(pk__in=missing.values("drawer"))
    rooms = Room.objects.within(palace).filter(pk__in=keys.values("room"))
    return _counted(rooms, keys.filter(room=OuterRef("pk")).order_by())


def unrecalled_rooms(palace: Palace, before: datetime) -> QuerySet[Room]:
    """Rooms from before a moment of which no recall brought anything, unless they are to stay.

    None in a palace where no room was recalled: then it says nothing about a room.
    """
    rooms = Room.objects.within(palace).filter(kept_count__gt=0).select_related("wing")
    recalled = Room.objects.within(palace).filter(recalled_at__isnull=False)
    unrecalled = rooms.filter(created_at__lt=before, reviewed_at=None, recalled_at=None)
    unrecalled = unrecalled.exclude(wing__number=Wing.UNSORTED).filter(Exists(recalled))
    return unrecalled.annotate(drawer_count=F("kept_count")).order_by("started_at", "number")


def _counted(rooms: QuerySet[Room], drawers: QuerySet[Drawer]) -> QuerySet[Room]:
    counted: QuerySet[Room] = rooms.annotate(drawer_count=_count(drawers, "room"))
    return counted.select_related("wing").order_by("started_at", "number")


def closets_of(room: Room) -> QuerySet[Closet]:
    """In the order they came up, each with `drawer_count`."""
    kept = _kept_where(room.palace_id, closet=OuterRef("pk"))
    closets: QuerySet[Closet] = (
        Closet.objects.filter(palace=room.palace_id)
        .filter(Exists(kept), room=room)
        .annotate(drawer_count=_count(kept, "closet"))
        .order_by("pk")
    )
    return closets


@dataclass(frozen=True, slots=True)
class ClosetRow:
    """A closet on its room's page; `drawers` only where the page is short enough to hold them."""

    closet: Closet
    drawers: list[Drawer] | None


def closet_rows(room: Room, closets: list[Any], *, at_most: int) -> list[ClosetRow]:
    """The closets, with their drawers if those are no more than `at_most` altogether."""
    if sum(closet.drawer_count for closet in closets) > at_most:
        return [ClosetRow(closet, None) for closet in closets]
    by_closet: dict[int | None, list[Drawer]] = {closet.pk: [] for closet in closets}
    for drawer in _shown(Drawer.objects.filter(palace=room.palace_id, closet__in=closets)):
        by_closet[drawer.closet_id].append(drawer)
    return [ClosetRow(closet, by_closet[closet.pk]) for closet in closets]


def drawers_of(closet: Closet) -> QuerySet[Drawer]:
    return _shown(Drawer.objects.filter(palace=closet.palace_id, closet=closet))


def loose_drawers_of(room: Room) -> QuerySet[Drawer]:
    """Drawers of the room that are in no closet."""
    return _shown(Drawer.objects.filter(palace=room.palace_id, room=room, closet=None))


def _shown(drawers: Any) -> QuerySet[Drawer]:
    """In order of speaking, each with `preview`."""
    return with_preview(listed(drawers.kept().in_order()))


def listed(drawers: DrawerQuerySet) -> DrawerQuerySet:
    """With their places; what lists do not show is read only if somebody asks for it."""
    return drawers.with_place().only(*_LISTED)


def with_preview(drawers: QuerySet[Drawer]) -> QuerySet[Drawer]:
    """Each with `preview`, the beginning of its text; the text itself is deferred."""
    return drawers.annotate(preview=Left("text", PREVIEW_LENGTH)).defer("text")


# What rows of pages show of a drawer and its place.
_SHOWN: tuple[Part, ...] = (
    (
        *(Drawer, "d"),
        all_but(Drawer, "id uuid palace_id room_id number role speaker said_at trashed_at"),
    ),
    (Room, "r", all_but(Room, "id uuid palace_id wing_id number title")),
    (Wing, "w", all_but(Wing, "id uuid palace_id number name")),
    (Closet, "c", all_but(Closet, "id uuid palace_id title")),
)


def shown_drawers(
    palace: Palace, by: Literal["id", "uuid"], keys: Collection[Any], *, whole: bool = False
) -> dict[Any, Any]:
    """Those that exist, by key or id, with their places and `preview`, the beginning of the text.

    Args:
        whole: With the whole text.
    """
    found: dict[Any, Any] = {}
    given = {"palace": palace.pk, "keys": list(keys)}
    for text, *rest in fetch_rows(_drawers(by, whole=whole), given, prepared=True) if keys else ():
        values = iter(rest)
        drawer, room, wing, closet = (
            read_instance(model, values, without) for model, _, without in _SHOWN
        )
        # Descriptors would check each time what the database has checked.
        room._state.fields_cache["wing"] = wing  # type: ignore[union-attr]
        drawer._state.fields_cache |= {"room": room, "closet": closet}  # type: ignore[union-attr]
        drawer.__dict__["preview"] = text[:PREVIEW_LENGTH]
        if whole:
            drawer.__dict__["text"] = text
        found[getattr(drawer, by)] = drawer
    return found


@cache
def _drawers(by: Literal["id", "uuid"], *, whole: bool) -> str:
    """Written out: Django takes longer to put it together than the database to answer it."""
    text = "d.text" if whole else f"left(d.text, {PREVIEW_LENGTH})"
    kind = {"id": "bigint", "uuid": "uuid"}[by]
    return f"""
        SELECT {text}, {columns_of(_SHOWN)} FROM palace_drawer d
        JOIN palace_room r ON r.palace_id = %(palace)s AND r.id = d.room_id
        JOIN palace_wing w ON w.palace_id = %(palace)s AND w.id = r.wing_id
        LEFT JOIN palace_closet c ON c.palace_id = %(palace)s AND c.id = d.closet_id
        WHERE d.palace_id = %(palace)s AND d.{by} = ANY(%(keys)s::{kind}[])
    """  # noqa: S608 - put together from the models.


def _kept_where(palace: int, **place: OuterRef) -> QuerySet[Drawer]:
    """The palace is named too, though the place implies it: every index starts with it."""
    kept: QuerySet[Drawer] = Drawer.objects.kept().filter(palace=palace, **place)
    return kept.order_by()


def _count(rows: QuerySet[Any, Any], by: str, *, of: str = "pk") -> Coalesce:
    counted = rows.values(by).annotate(n=Count(of, distinct=of != "pk")).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def find_by_pointer(palace: Palace, wanted: Pointer) -> Drawer | None:
    """The kept drawer at this address. A room's number is its own, even after it moved wings."""
    kept = Drawer.objects.within(palace).kept()
    found: Drawer | None = kept.filter(
        room__palace=palace, room__number=wanted.room, number=wanted.drawer
    ).first()
    return found

"""Wings, rooms, closets and drawers of one palace with their counts, without the trash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, Exists, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Left

from palace.models import Closet, Drawer, Palace, Pointer, Room, Wing

PREVIEW_LENGTH = 300

# Drawers are counted by room first: joined to their rooms one by one it takes three times as long.
_WINGS = """
SELECT r.wing_id, count(*), sum(d.drawers)::bigint
FROM (
    SELECT room_id, count(*) AS drawers FROM palace_drawer
    WHERE palace_id = %s AND trashed_at IS NULL GROUP BY room_id
) d
JOIN palace_room r ON r.palace_id = %s AND r.id = d.room_id
GROUP BY r.wing_id
"""


@dataclass(frozen=True, slots=True)
class WingRow:
    wing: Wing
    rooms: int
    drawers: int


def wing_rows(palace: Palace) -> list[WingRow]:
    """The wings that are not empty, by name; the unsorted one comes last."""
    counts = wing_counts(palace)
    wings = Wing.objects.within(palace).filter(pk__in=counts)
    rows = [WingRow(wing, *counts[wing.pk]) for wing in wings]
    return sorted(
        rows, key=lambda row: (row.wing.number == Wing.UNSORTED, row.wing.name.casefold())
    )


def wing_counts(palace: Palace) -> dict[int, tuple[int, int]]:
    """Rooms and drawers of each wing that is not empty, by its key."""
    with connection.cursor() as cursor:
        cursor.execute(_WINGS, [palace.pk, palace.pk])
        return {wing: (rooms, drawers) for wing, rooms, drawers in cursor.fetchall()}


def rooms_of(wing: Wing) -> QuerySet[Room]:
    """Newest first, each with `drawer_count` and `closet_count`."""
    kept = _kept_where(room=OuterRef("pk"))
    rooms: QuerySet[Room] = (
        Room.objects.filter(palace=wing.palace_id)
        .filter(Exists(kept), wing=wing)
        .annotate(
            drawer_count=_count(kept, "room"),
            closet_count=_count(kept.exclude(closet=None), "room", of="closet"),
        )
        .order_by("-started_at", "-number")
    )
    return rooms


def closets_of(room: Room) -> QuerySet[Closet]:
    """In the order they came up, each with `drawer_count`."""
    kept = _kept_where(closet=OuterRef("pk"))
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
    return with_preview(drawers.kept().with_place().in_order())


def with_preview(drawers: QuerySet[Drawer]) -> QuerySet[Drawer]:
    """Each with `preview`, the beginning of its text; the text itself is deferred."""
    return drawers.annotate(preview=Left("text", PREVIEW_LENGTH)).defer("text")


def _kept_where(**place: OuterRef) -> QuerySet[Drawer]:
    """The palace is named too, though the place implies it: every index starts with it."""
    kept: QuerySet[Drawer] = Drawer.objects.kept().filter(palace=OuterRef("palace"), **place)
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

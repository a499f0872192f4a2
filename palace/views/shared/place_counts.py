"""The counts on a page that htmx updates when a drawer is trashed or restored in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import Resolver404, resolve

from palace.curation.trash import drawers_in
from palace.models import Drawer
from palace.queries.places import WingRow, wing_rows
from settings_app.pages import PageRequest
from settings_app.row_tags import counted

# How many levels above a drawer have counts on a page.
LEVELS = {"closet_detail": 1, "room_detail": 1, "wing_detail": 2, "memory": 3}
TOTALS = "totals"


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """A count as it is now, and the id of the element that shows it."""

    id: str
    words: str


def counts_beside(request: PageRequest, drawer: Drawer) -> list[PlaceCount]:
    """The counts on the requesting page that include this drawer."""
    levels = LEVELS.get(_page_name(request), 0)
    counts = []
    if drawer.closet and levels >= 1:
        counts.append(_count(drawer.closet.uuid, drawers_in(drawer.closet).kept().count()))
    if levels >= 2:
        counts.append(_count(drawer.room.uuid, drawers_in(drawer.room).kept().count()))
    if levels >= 3:
        counts += _of_the_palace(drawer)
    return counts


def totals(rows: Sequence[WingRow]) -> str:
    """`2 wings, 3 rooms and 12 drawers`."""
    rooms, drawers = sum(row.rooms for row in rows), sum(row.drawers for row in rows)
    return (
        f"{counted(len(rows), 'wing')}, {counted(rooms, 'room')} and {counted(drawers, 'drawer')}"
    )


def _of_the_palace(drawer: Drawer) -> list[PlaceCount]:
    rows = wing_rows(drawer.palace)
    wing = drawer.room.wing
    row = next((row for row in rows if row.wing.pk == wing.pk), WingRow(wing, 0, 0))
    words = f"{counted(row.rooms, 'room')}, {counted(row.drawers, 'drawer')}"
    return [PlaceCount(f"count-{wing.uuid}", words), PlaceCount(TOTALS, totals(rows))]


def _count(uuid: object, drawers: int) -> PlaceCount:
    return PlaceCount(f"count-{uuid}", counted(drawers, "drawer"))


def _page_name(request: PageRequest) -> str:
    path, _, _ = (request.htmx.current_url_abs_path or "/").partition("?")
    try:
        return resolve(path).url_name or ""
    except Resolver404:
        return ""

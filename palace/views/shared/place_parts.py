"""Parts of the pages of places: the floor plan, and counts.

The plan is lit by a search or a recall, and as of a day. The counts are those that htmx updates
when a drawer is trashed or restored in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from html import escape
from typing import Any

from django import template
from django.http import QueryDict
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from palace.curation.trash import drawers_in
from palace.models import Drawer, Palace, RecollectionTrace
from palace.queries.floor_plan import (
    CELL,
    CORRIDOR,
    DOOR,
    HALL,
    PlanRoom,
    PlanView,
    PlanWing,
    floor_plan,
)
from palace.queries.places import WingRow, listed, wing_rows, with_preview
from palace.queries.timeline import histogram, known_then, messages_by_month
from palace.views.search import NAMES
from palace.views.shared.palace_tags import days_in
from palace.views.shared.query_params import ChosenDay, get_by_uuid, query_string
from settings_app.pages import PageRequest
from settings_app.row_tags import counted

register = template.Library()

# Wings named below the plan when they do not fit into it.
FOLDED_SHOWN = 60
MEASURES = {"corridor": CORRIDOR, "hall": HALL}
# The length at which an address names no floor.
FLOOR_DIGITS = 7
# How many levels above a drawer have counts on a page.
LEVELS = {"closet_detail": 1, "room_detail": 1, "wing_detail": 2, "memory": 3}
TOTALS = "totals"


def plan_context(
    palace: Palace, wings: Sequence[WingRow], sent: QueryDict, lit: Sequence[int]
) -> dict[str, Any]:
    """What `_plan.html` shows.

    Args:
        lit: Keys of the rooms of the hits, best first.
    """
    chosen = ChosenDay.read(sent)
    until = chosen.moment
    kept = [(name, sent.get(name, "")) for name in (*NAMES, "recall")]
    address = reverse("memory")
    plan = floor_plan(palace, wings, PlanView(until=until, lit=lit))
    folded = [wing for wing in plan if wing.is_folded]
    return {
        "plan": [wing for wing in plan if not wing.is_folded],
        "folded": folded[:FOLDED_SHOWN],
        "folded_more": len(folded) - FOLDED_SHOWN,
        "measures": MEASURES,
        "chosen": chosen,
        "histogram": histogram(messages_by_month(palace), chosen.day),
        "action": address,
        "kept": kept,
        "today": address + query_string(**dict(kept)),
        "known": known_then(palace, until, chosen.basis) if until else None,
        "all_facts": query_string(
            as_of=chosen.day.isoformat() if chosen.day else "", clock=chosen.basis
        ),
    }


def wing_plan(palace: Palace, row: WingRow, floor: str) -> dict[str, Any]:
    """One floor of a wing, by default the newest, and the ways to the others.

    Args:
        floor: From 1, as text from the address.
    """
    if not row.rooms:
        return {}
    floors = {row.wing.pk: int(floor)} if floor.isdecimal() and len(floor) < FLOOR_DIGITS else {}
    wing = floor_plan(palace, [row], PlanView(floors=floors))[0]
    numbers = range(max(wing.floor - 3, 1), min(wing.floor + 3, wing.floors) + 1)
    return {"plan_wing": wing, "floors": numbers, "measures": MEASURES}


@dataclass(frozen=True, slots=True)
class Source:
    """A drawer that a recall found.

    Attributes:
        place: From 1, as on the plan.
        drawer: With its `preview`.
    """

    place: int
    drawer: Drawer


def sources_of(palace: Palace, uuid: str) -> tuple[RecollectionTrace, list[Source]]:
    """A recall and the kept drawers that it found, best first.

    Raises:
        Http404: there is no such recall in this palace.
    """
    trace = get_by_uuid(RecollectionTrace.objects.filter(palace=palace), uuid)
    wanted = [hit["drawer"] for hit in trace.hits]
    kept = with_preview(listed(Drawer.objects.within(palace).kept()))
    found = {str(drawer.uuid): drawer for drawer in kept.filter(uuid__in=wanted)}
    return trace, [Source(n, found[key]) for n, key in enumerate(wanted, 1) if key in found]


def lit_by(sources: Sequence[Source]) -> list[int]:
    """Keys of their rooms by place; 0 where a drawer is gone."""
    rooms = {source.place: source.drawer.room_id for source in sources}
    return [rooms.get(place, 0) for place in range(1, max(rooms, default=0) + 1)]


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


@register.filter
def plan_rooms(rooms: Iterable[PlanRoom]) -> SafeString:
    """Rooms of a floor of the plan, in one piece: a page has up to a hundred and fifty."""
    rooms = list(rooms)
    later = {room.room.slot: room.depth for room in rooms if room.is_later}
    zone = timezone.get_current_timezone()
    leaves = "".join(_leaf(room) for room in rooms if not room.is_later)
    drawn = "".join(_plan_room(room, later, zone) for room in rooms)
    # The titles are escaped.
    return mark_safe(f'{drawn}<path class="plan-leaf" d="{leaves}"/>')  # noqa: S308


def _plan_room(room: PlanRoom, later: Mapping[int | None, float], zone: tzinfo) -> str:
    """Its name is its title, which browsers also show on hovering."""
    said = "later" if room.is_later else counted(room.drawers, "message")
    name = [room.room.title, days_in(room.room, zone), said]
    name += [counted(room.facts, "fact")] if room.facts else []
    name += [f"hit {' and '.join(map(str, room.pins))}"] if room.pins else []
    classes = f"age-{room.age}{' later' * room.is_later}{' lit' * bool(room.pins)}"
    x, y = room.centre
    mark = _dashed_walls(room, later) if room.is_later else ""
    if room.pins:
        mark += f'<text x="{x}" y="{y}" dy=".35em">{room.pins[0]}</text>'
    elif room.facts:
        mark += f'<circle cx="{x}" cy="{y}" r="3"/>'
    return (
        f'<g role="listitem"><a href="{room.room.get_absolute_url()}" class="plan-room {classes}">'
        f"<title>{escape(', '.join(name))}</title>"
        f'<rect x="{room.x}" y="{room.y}" width="{CELL}" height="{room.depth}"/>{mark}</a></g>\n'
    )


def _leaf(room: PlanRoom) -> str:
    """Its door, open into the room, and the way that it turns.

    A curve that is nearly a quarter of a circle: an arc would need half as many bytes more.
    """
    inward, threshold = (DOOR, HALL + CORRIDOR) if room.y > HALL else (-DOOR, HALL)
    hinge = f"M{room.centre[0] - DOOR // 2} {threshold:g}"
    return f"{hinge}v{inward}q{DOOR} 0 {DOOR} {-inward}"


def _dashed_walls(room: PlanRoom, later: Mapping[int | None, float]) -> str:
    """Each wall once: the dashes of two rooms would fill each other's gaps.

    Args:
        later: The depths of the dashed rooms of this floor, by slot.
    """
    left, right, outward = room.x, room.x + CELL, 1 if room.y > HALL else -1
    base = room.y if outward > 0 else room.y + room.depth
    far, shared = base + outward * room.depth, later.get((room.room.slot or 0) - 2, 0)
    walls = f"M{left} {base:.1f}H{right}V{far:.1f}H{left}"
    if shared < room.depth:
        walls += f"M{left} {base + outward * shared:.1f}V{far:.1f}"
    return f'<path d="{walls}"/>'


@register.filter
def folded_wings(wings: Iterable[PlanWing]) -> SafeString:
    """The wings that the plan only names, in one piece: a page has up to sixty."""
    return mark_safe("".join(map(_folded_wing, wings)))  # noqa: S308 - the names are escaped.


def _folded_wing(wing: PlanWing) -> str:
    place = wing.row.wing
    said = counted(wing.row.rooms, "room")
    if wing.pins_elsewhere:
        said += f", hits {', '.join(map(str, wing.pins_elsewhere))}"
    return (
        f'<li><a href="{place.get_absolute_url()}">{escape(place.name)}</a>'
        f' <span class="muted">{said}</span></li>\n'
    )

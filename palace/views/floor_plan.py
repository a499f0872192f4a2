"""The floor plan on a page: lit by a search or a recall, and as of a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from palace.models import Drawer, Palace, RecollectionTrace
from palace.queries.floor_plan import CELL, CORRIDOR, HALL, PlanView, floor_plan
from palace.queries.places import WingRow, with_preview
from palace.queries.timeline import histogram, known_then, messages_by_month
from palace.views.search import NAMES
from palace.views.shared.query_params import ChosenDay, get_by_uuid, query_string

# Wings named below the plan when they do not fit into it.
FOLDED_SHOWN = 60
MEASURES = {"cell": CELL, "corridor": CORRIDOR, "hall": HALL}
# The length at which an address names no floor.
FLOOR_DIGITS = 7


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
    kept = with_preview(Drawer.objects.within(palace).kept().with_place())
    found = {str(drawer.uuid): drawer for drawer in kept.filter(uuid__in=wanted)}
    return trace, [Source(n, found[key]) for n, key in enumerate(wanted, 1) if key in found]


def lit_by(sources: Sequence[Source]) -> list[int]:
    """Keys of their rooms by place; 0 where a drawer is gone."""
    rooms = {source.place: source.drawer.room_id for source in sources}
    return [rooms.get(place, 0) for place in range(1, max(rooms, default=0) + 1)]

"""The lines of a timeline: conversations, and facts that begin, end or turn an opinion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.utils.timezone import localtime

from palace.models import Fact, Palace, Room
from palace.queries.facts import add_quotes
from palace.queries.timeline import Happened, Happening
from palace.views.shared.pagination import NumberedPage, page_number

STORY_SIZE = 30
YEAR_UNKNOWN = "Since when is not known"


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a timeline.

    Attributes:
        kind: One of `Happening`.
        at: None: since when is not known.
        fact: What begins or ends; None for a conversation.
        room: The conversation; None for a fact.
        turned_from: The earlier opinion, where an opinion turns.
    """

    kind: str
    at: datetime | None
    fact: Fact | None = None
    room: Room | None = None
    turned_from: Fact | None = None


def rows_until(number: str | None, size: int = STORY_SIZE) -> int:
    """How many rows a list needs up to its page `number`, and one more to know of a next page."""
    return page_number(number) * size + 1


def story_page(palace: Palace, found: Sequence[Happened], number: str | None) -> dict[str, Any]:
    """What `_story.html` shows: one page of a timeline, by year.

    Args:
        found: The latest first, at least `rows_until(number)` if there are as many.
    """
    rows = NumberedPage(found, number, size=STORY_SIZE)
    return {"story": rows, "years": _by_year(_moments(palace, rows.rows))}


def _moments(palace: Palace, rows: Sequence[Happened]) -> list[Moment]:
    keys = [row for kind, _, row in rows if kind != Happening.TALK]
    facts = Fact.objects.within(palace)
    found = facts.select_related("subject", "object_entity", "supersedes").in_bulk(keys)
    add_quotes(palace, found.values())
    rooms = Room.objects.within(palace).select_related("wing").only("uuid", "title", "wing__name")
    talks = rooms.in_bulk([row for kind, _, row in rows if kind == Happening.TALK])
    return [
        Moment(kind, at, room=talks[row])
        if kind == Happening.TALK
        else Moment(kind, at, found[row], turned_from=_earlier_opinion(kind, found[row]))
        for kind, at, row in rows
    ]


def _earlier_opinion(kind: str, fact: Fact) -> Fact | None:
    earlier = fact.supersedes
    if kind != Happening.BEGINS or fact.type != Fact.Type.OPINION or earlier is None:
        return None
    return earlier if earlier.stance != fact.stance else None


def _by_year(moments: Iterable[Moment]) -> list[tuple[str, list[Moment]]]:
    return [(year, list(group)) for year, group in groupby(moments, key=_year)]


def _year(moment: Moment) -> str:
    return str(localtime(moment.at).year) if moment.at else YEAR_UNKNOWN

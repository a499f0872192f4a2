"""The lines of a timeline: conversations, and facts that begin, end or turn an opinion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby
from typing import Any
from uuid import UUID

from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import localtime

from isolation.raw_sql import fetch_rows
from palace.models import Fact, Palace
from palace.queries.facts import add_quotes, facts_of_keys
from palace.queries.timeline import Happened, Happening
from palace.views.shared.palace_tags import fact_words, period, second_person
from palace.views.shared.query_params import NumberedPage, page_number
from settings_app.fast_reverse import address_of
from settings_app.row_tags import day_of

STORY_SIZE = 30
YEAR_UNKNOWN = "Since when is not known"


@dataclass(frozen=True, slots=True)
class Talk:
    """What a timeline shows of a conversation: the id and title of its room, and its wing."""

    uuid: UUID
    title: str
    wing: str


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
    room: Talk | None = None
    turned_from: Fact | None = None

    @property
    def item(self) -> SafeString:
        """Its line in one piece: a page has thirty."""
        return self._item(wing=True)

    @property
    def item_of_wing(self) -> SafeString:
        """Likewise on the page of its wing, which needs not be named."""
        return self._item(wing=False)

    def _item(self, *, wing: bool) -> SafeString:
        if self.room:
            body = _of_room(self.room, self.at, wing=wing)
        elif self.fact and self.kind == Happening.ENDS:
            body = f"{_when(_day(self.at), 'Ended')}{_text(self.fact)}"
        else:
            body = self._of_fact()
        past = " past" if self.fact and self.fact.retired_at else ""
        return mark_safe(  # noqa: S308 - its parts are escaped.
            f'<li class="moment moment-{self.kind}{past}">\n{body}</li>\n'
        )

    def _of_fact(self) -> str:
        """What begins, with the opinion that it turns."""
        fact, before = self.fact, self.turned_from
        if fact is None:
            return ""
        fate = fact.get_fate_display() if fact.retired_at else ""
        when = _when(period(fact) or "so far", "Changed opinion" if before else fate)
        turned = f'<p class="muted">Before: {_link(before)}</p>\n' if before else ""
        return f"{when}{_text(fact)}{turned}{fact_words(fact)}"


def _of_room(room: Talk, at: datetime | None, *, wing: bool) -> str:
    title = f'<a href="{address_of("room_detail", room.uuid)}">{escape(room.title)}</a>'
    place = f' <span class="muted">{escape(room.wing)}</span>' if wing else ""
    return f'{_when(_day(at), "Conversation")}<p class="fact-text">{title}{place}</p>\n'


def _when(day: str, fate: str) -> str:
    fate = f' <span class="fate">{fate}</span>' if fate else ""
    return f'<p class="when">{day}{fate}</p>\n'


def _day(at: datetime | None) -> str:
    return day_of(localtime(at)) if at else ""


def _text(fact: Fact) -> str:
    return f'<p class="fact-text">{_link(fact)}</p>\n'


def _link(fact: Fact) -> str:
    return f'<a href="{fact.get_absolute_url()}">{escape(second_person(fact.text))}</a>'


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
    found = facts_of_keys(palace, keys)
    opinions = (fact for fact in found.values() if fact.type == Fact.Type.OPINION)
    earlier = facts_of_keys(palace, [key for fact in opinions if (key := fact.supersedes_id)])
    add_quotes(palace, found.values())
    talks = _rooms(palace, [row for kind, _, row in rows if kind == Happening.TALK])
    return [
        Moment(kind, at, room=talks[row])
        if kind == Happening.TALK
        else Moment(kind, at, found[row], turned_from=_turned_from(kind, found[row], earlier))
        for kind, at, row in rows
    ]


_ROOMS = """
SELECT room.id, room.uuid, room.title, wing.name FROM palace_room room
JOIN palace_wing wing ON wing.palace_id = %(palace)s AND wing.id = room.wing_id
WHERE room.palace_id = %(palace)s AND room.id = ANY(%(rooms)s::bigint[])
"""


def _rooms(palace: Palace, keys: Sequence[int]) -> dict[int, Talk]:
    rows = fetch_rows(_ROOMS, {"palace": palace.pk, "rooms": keys}, prepared=True) if keys else ()
    return {key: Talk(*shown) for key, *shown in rows}


def _turned_from(kind: str, fact: Fact, earlier: Mapping[int, Fact]) -> Fact | None:
    """Of the earlier opinions, by key, the one that this opinion turns."""
    before = earlier.get(fact.supersedes_id or 0)
    if kind != Happening.BEGINS or fact.type != Fact.Type.OPINION or before is None:
        return None
    return before if before.stance != fact.stance else None


def _by_year(moments: Iterable[Moment]) -> list[tuple[str, list[Moment]]]:
    return [(year, list(group)) for year, group in groupby(moments, key=_year)]


def _year(moment: Moment) -> str:
    return str(localtime(moment.at).year) if moment.at else YEAR_UNKNOWN

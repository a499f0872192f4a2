"""The palace's search: what the address asks for, the choices of its filters, snippets of hits.

Each hit's row, with the one reason why it was found, is made in `memory`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache
from html import escape
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import QueryDict
from django.utils.dateformat import format as format_date
from django.utils.safestring import SafeString, mark_safe

from isolation.raw_sql import columns, fetch_rows, read_instance
from language.analyzer import analyze, language_of
from language.errors import PalaceError
from language.storable import storable_label
from palace.models import Drawer, Entity, Palace, Wing, stored_name
from palace.queries.places import WingRow
from palace.recall import Narrowing, RecallRequest
from palace.views.shared.palace_tags import ROLES, excerpt, source_name
from palace.views.shared.query_params import (
    BadDay,
    end_of,
    get_by_uuid,
    query_string,
    read_day,
    start_of,
)

HITS_SHOWN, NEAREST_SHOWN = 20, 5
# The most choices of a filter.
WINGS_OFFERED, PEOPLE_OFFERED = 60, 60
# Names in the address: the filters, and all that a search is made of.
FILTERS = ("wing", "person", "by", "kind", "from", "to")
NAMES = ("q", "like", *FILTERS)
SNIPPET_LENGTH = 340
# Characters shown before the question's first word.
LEAD_LENGTH = 60

# What a choice of people does not show of them.
_UNNAMED = frozenset("palace_id uuid slug aliases created_at".split())

WORD = re.compile(r"\w+(?:['’]\w+)*")


class NobodyOfThisName(PalaceError):
    code = "nobody_of_this_name"

    def __init__(self, name: str) -> None:
        super().__init__(f"Nobody here is called “{name[:60]}”. Choose a name from the list.")


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in force, and the address without it."""

    label: str
    address: str


@dataclass(frozen=True, slots=True)
class Search:
    """What an address of the palace asks for.

    Attributes:
        sent: Name and text of each parameter that is not empty.
        words: None: nothing is searched by words.
        like: The drawer that hits are to be like.
        nearest: Whether what is too far is shown too.
        error: What is wrong with a filter, in a sentence.
    """

    sent: Mapping[str, str] = field(default_factory=dict)
    words: str | None = None
    like: Drawer | None = None
    wing: Wing | None = None
    person: Entity | None = None
    since: date | None = None
    until: date | None = None
    nearest: bool = False
    error: PalaceError | None = None

    @classmethod
    def read(cls, palace: Palace, sent: QueryDict) -> Search:
        """
        Raises:
            Http404: a drawer, a wing or a person is not in this palace.
        """
        text = {name: storable_label(sent.get(name, "")).strip() for name in ("like", *FILTERS)}
        person, since, until, error = None, None, None, None
        try:
            person = _person(palace, text["person"])
            since, until = read_day(text["from"]), read_day(text["to"])
        except (BadDay, NobodyOfThisName) as refused:
            error = refused
        kept = Drawer.objects.within(palace).kept().with_place()
        return cls(
            sent={n: value for n, value in (text | {"q": sent.get("q", "")}).items() if value},
            words=sent.get("q"),
            like=get_by_uuid(kept, text["like"]) if text["like"] else None,
            wing=get_by_uuid(Wing.objects.within(palace), text["wing"]) if text["wing"] else None,
            person=person,
            since=since,
            until=until,
            nearest=bool(sent.get("nearest")),
            error=error,
        )

    @property
    def is_asked(self) -> bool:
        return self.words is not None or self.like is not None

    @property
    def is_blank(self) -> bool:
        return self.like is None and not (self.words or "").strip()

    @property
    def is_narrowed(self) -> bool:
        return any(name in self.sent for name in FILTERS)

    @property
    def question(self) -> str:
        """The words to search by; those of a drawer where hits are to be like it."""
        return self.like.text if self.like else self.words or ""

    @property
    def narrowing(self) -> Narrowing:
        return Narrowing(
            wing=self.wing.uuid if self.wing else None,
            person=self.person.uuid if self.person else None,
            since=start_of(self.since) if self.since else None,
            until=end_of(self.until) if self.until else None,
            speaker=self.sent.get("by", ""),
            source=self.sent.get("kind", ""),
        )

    def request(self, *, store_trace: bool) -> RecallRequest:
        """
        Raises:
            PalaceError: a filter is wrong.
        """
        if self.error:
            raise self.error
        return RecallRequest(
            self.question,
            top_k=NEAREST_SHOWN if self.nearest else HITS_SHOWN,
            exclude_ids=[self.like.pk] if self.like else (),
            narrowing=self.narrowing,
            nearest=self.nearest,
            rerank=None if store_trace else False,
            store_trace=store_trace,
        )

    def address(self, *without: str, **more: str) -> str:
        """The query string, without some parameters and with others."""
        return query_string(**{n: v for n, v in self.sent.items() if n not in without}, **more)

    @property
    def why_address(self) -> str:
        return self.address(why="1", **({"nearest": "1"} if self.nearest else {}))

    @property
    def nearest_address(self) -> str:
        return self.address(nearest="1")

    @property
    def list_address(self) -> str:
        return self.address(view="list")

    @property
    def wide_address(self) -> str:
        """Without filters."""
        return self.address(*FILTERS)

    @property
    def title(self) -> str:
        return excerpt(self.like.text) if self.like else self.words or ""

    @property
    def chips(self) -> list[Chip]:
        labels = {
            "like": f"Like {self.like.pointer}" if self.like else "",
            "wing": f"In {self.wing.name}" if self.wing else "",
            "person": f"Mentions {self.person.display_name}" if self.person else "",
            "by": f"Said by {speaker_name(self.sent.get('by', ''))}",
            "kind": f"From {source_name(self.sent.get('kind', ''))}",
            "from": f"Since {format_date(self.since, 'j M Y')}" if self.since else "",
            "to": f"Until {format_date(self.until, 'j M Y')}" if self.until else "",
        }
        return [
            Chip(label, self.address(name))
            for name, label in labels.items()
            if label and name in self.sent
        ]

    @property
    def person_name(self) -> str:
        return self.person.display_name if self.person else self.sent.get("person", "")


def _person(palace: Palace, text: str) -> Entity | None:
    """The entity of this name, another name, or id.

    Raises:
        NobodyOfThisName: there is none of this name.
        Http404: there is none of this id.
    """
    if not text:
        return None
    mine = Entity.objects.filter(palace=palace)
    if _is_uuid(text):
        return get_by_uuid(mine, text)
    name = stored_name(text)
    called = mine.filter(Q(name__iexact=name) | Q(aliases__contains=[name]))
    # A person comes before a place or a thing of the same name.
    found = sorted(called[:PEOPLE_OFFERED], key=lambda each: (each.kind != "person", each.pk))
    if not found:
        raise NobodyOfThisName(text)
    return found[0]


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def speaker_name(by: str) -> str:
    return {"user": "you", "assistant": "the assistant"}.get(by, by)


def filter_choices(
    palace: Palace, wings: Sequence[WingRow], asked: Search
) -> dict[str, Sequence[Any]]:
    """What the filters offer: wings, people, speakers and sources."""
    largest = sorted(wings, key=lambda row: -row.drawers)[:WINGS_OFFERED]
    offered = {row.wing.pk: row.wing for row in largest}
    if asked.wing:
        offered[asked.wing.pk] = asked.wing
    chosen = asked.wing.pk if asked.wing else None
    by_name = sorted(offered.values(), key=lambda wing: wing.name.casefold())
    wing_options = [(str(wing.uuid), wing.name, wing.pk == chosen) for wing in by_name]
    sources = sorted({source for row in wings for source in row.sources})
    by = asked.sent.get("by", "")
    named = [by] if by and by not in ("user", "assistant") else []
    return {
        "offered_wings": _options(wing_options),
        "offered_people": _options((name, "", False) for name in _people(palace)),
        "offered_speakers": [
            (each, ROLES.get(each, each)) for each in ("user", "assistant", *named)
        ],
        "offered_sources": [(each, source_name(each)) for each in sources],
    }


def _options(choices: Iterable[tuple[str, str, bool]]) -> SafeString:
    """Options of a list in one piece: a page has a hundred and twenty.

    Args:
        choices: Value, label, and whether it is chosen.
    """
    options = (
        f'<option value="{escape(value)}"{" selected" * is_chosen}>{escape(label)}</option>'
        for value, label, is_chosen in choices
    )
    return mark_safe("".join(options))  # noqa: S308 - values and labels are escaped.


def _people(palace: Palace) -> list[str]:
    """The names of the latest people."""
    given = [palace.pk, [str(kind) for kind in Entity.BEINGS], PEOPLE_OFFERED]
    rows = fetch_rows(_latest_people(), given, prepared=True)
    people = (read_instance(Entity, iter(row), _UNNAMED) for row in rows)
    return [person.display_name for person in people if person]


@cache
def _latest_people() -> str:
    return (
        f"SELECT {columns(Entity, 'e', _UNNAMED)} FROM palace_entity e"  # noqa: S608 - of the model.
        " WHERE e.palace_id = %s AND e.kind = ANY(%s) ORDER BY e.id DESC LIMIT %s"
    )


@lru_cache(maxsize=10_000)
def terms_of_word(word: str, language: str) -> frozenset[str]:
    """Cached, as the messages of a page share most of their words."""
    return frozenset(analyze(word, language))


def snippet_of(
    text: str, passage: tuple[int, int], terms: set[str], length: int = SNIPPET_LENGTH
) -> tuple[tuple[str, bool], ...]:
    """The best stretch of the passage, in pieces; True marks a word of the question."""
    language = language_of(text)
    matches = [
        match.span()
        for match in WORD.finditer(text, *passage)
        if not terms.isdisjoint(terms_of_word(match[0], language))
    ]
    start, end = _stretch(text, passage, matches, length)
    # The dots stay on the line of the word beside them.
    pieces: list[tuple[str, bool]] = [("…\u00a0" if start > 0 else "", False)]
    at = start
    for first, last in matches:
        if first >= at and last <= end:
            pieces += [(text[at:first], False), (text[first:last], True)]
            at = last
    pieces += [(text[at:end], False), ("\u00a0…" if end < len(text) else "", False)]
    return tuple(piece for piece in pieces if piece[0])


def _stretch(
    text: str, passage: tuple[int, int], matches: Sequence[tuple[int, int]], length: int
) -> tuple[int, int]:
    """At most `length` characters of the passage, where most of `matches` are."""
    start, end = passage
    if end - start > length:
        begins = [max(start, first - LEAD_LENGTH) for first, _ in matches] or [start]
        start = max(
            begins,
            key=lambda b: sum(b <= first and last <= b + length for first, last in matches),
        )
        end = min(end, start + length)
    return _at_words(text, start, end)


def _at_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Move both ends inwards to white space, unless that is far away."""
    if start > 0 and not text[start - 1].isspace():
        gap = re.search(r"\s", text[start : min(start + 30, end)])
        start += gap.end() if gap else 0
    if end < len(text) and not text[end].isspace():
        cut = max(
            text.rfind(" ", max(start, end - 30), end), text.rfind("\n", max(start, end - 30), end)
        )
        end = cut if cut > start else end
    return start, end

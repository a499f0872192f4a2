"""The palace's search: what the address asks for, and each hit with one reason and its signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import QueryDict
from django.utils.dateformat import format as format_date

from language.analyzer import all_readings, analyze
from language.detection import language_of
from language.english.questions import read_intent
from language.storable import storable_label
from palace.errors import PalaceError
from palace.models import Drawer, Entity, Palace, Wing
from palace.queries.facts import display_name, stored_name
from palace.queries.places import WingRow
from palace.recall import Hit, Narrowing, RecallRequest, describe_move
from palace.recall.recipes import SIGNALS, label_of
from palace.templatetags.palace_tags import ROLES, excerpt, source_name
from palace.views.shared.query_params import (
    BadDay,
    end_of,
    get_by_uuid,
    query_string,
    read_day,
    start_of,
)
from palace.views.shared.snippets import WORD, snippet_of, terms_of_word

HITS_SHOWN, NEAREST_SHOWN = 20, 5
# Smaller shares have no visible bar, and a figure of 0.00.
SMALLEST_SHARE = 0.005
# The length of a hit's line, and how much of a text is searched for the question's words.
LINE_LENGTH, SEARCHED_LENGTH = 170, 20_000
# The most words that a reason quotes, and the most choices of a filter.
WORDS_QUOTED, WINGS_OFFERED, PEOPLE_OFFERED = 3, 60, 60
# Names in the address: the filters, and all that a search is made of.
FILTERS = ("wing", "person", "by", "kind", "from", "to")
NAMES = ("q", "like", *FILTERS)
# Reasons by the signal that counts most, where nothing plainer can be said.
REASONS = {
    "meaning": "Close in meaning",
    "agreement": "Close in meaning",
    "words": "Shares rare words with it",
    "exchange": "Stands beside a message that fits",
    "room": "Its whole conversation is about this",
    "preference": "States a lasting wish or taste",
}


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
            "person": f"Mentions {display_name(self.person)}" if self.person else "",
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
        return display_name(self.person) if self.person else self.sent.get("person", "")


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
    people = Entity.objects.filter(palace=palace, kind=Entity.Kind.PERSON)
    sources = sorted({source for row in wings for source in row.sources})
    by = asked.sent.get("by", "")
    named = [by] if by and by not in ("user", "assistant") else []
    return {
        "offered_wings": sorted(offered.values(), key=lambda wing: wing.name.casefold()),
        "offered_people": [display_name(each) for each in people.order_by("-pk")[:PEOPLE_OFFERED]],
        "offered_speakers": [
            (each, ROLES.get(each, each)) for each in ("user", "assistant", *named)
        ],
        "offered_sources": [(each, source_name(each)) for each in sources],
    }


@dataclass(frozen=True, slots=True)
class Bar:
    """One signal's share, drawn on a scale of 0 to 100 that all hits of a recall share."""

    label: str
    share: float
    zero: float
    start: float
    width: float

    @property
    def figure(self) -> str:
        return f"{self.share:+.2f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class HitRow:
    """
    Attributes:
        place: From 1, as on the plan.
        reason: Why it was found, in a sentence.
    """

    hit: Hit
    place: int
    snippet: tuple[tuple[str, bool], ...]
    reason: str
    bars: tuple[Bar, ...]

    @property
    def url(self) -> str:
        start, end = self.hit.passage
        return f"{self.hit.drawer.get_absolute_url()}?passage={start}-{end}"

    @property
    def moved(self) -> str:
        """How a reranking model moved it, in a sentence; empty without one."""
        before = self.hit.place_before
        return "" if before is None else describe_move(before, self.place)


def hit_rows(hits: Sequence[Hit], query: str, *, is_like: bool = False) -> list[HitRow]:
    """The hits as rows, in their order."""
    terms = all_readings(query)
    names = () if is_like else read_intent(query).names
    shares = [0.0, *chain.from_iterable(hit.signals.values() for hit in hits)]
    low, high = min(shares), max(shares)
    by_time = sum(hit.signals.get("time", 0) >= SMALLEST_SHARE for hit in hits)
    is_time_telling = by_time < max(len(hits), 2)
    return [
        HitRow(
            hit,
            place,
            snippet_of(hit.drawer.text, _stretch(hit, terms), terms, LINE_LENGTH),
            reason_of(hit, set() if is_like else terms, names, is_time_telling=is_time_telling),
            _bars(hit.signals, low, high),
        )
        for place, hit in enumerate(hits, start=1)
    ]


def _stretch(hit: Hit, terms: set[str]) -> tuple[int, int]:
    """The passage, unless the question's words stand only elsewhere in the text."""
    text = hit.drawer.text
    start, end = hit.passage
    if terms & analyze(text[start:end], language_of(text)).keys() or not _words_in(text, terms):
        return hit.passage
    return 0, min(len(text), SEARCHED_LENGTH)


def reason_of(hit: Hit, terms: set[str], names: Sequence[str], *, is_time_telling: bool) -> str:
    """The plainest true reason for a hit, in one sentence.

    Args:
        terms: Of the question; none if it was another message.
        names: The names in the question.
        is_time_telling: Not all hits are from the time that is asked about, or there is only one.
    """
    text = hit.drawer.text
    if is_time_telling and hit.signals.get("time", 0) >= SMALLEST_SHARE:
        return "From the time you asked about"
    if named := [name for name in names if name.casefold() in text.casefold()]:
        return f"Names {named[0]}"
    words = _words_in(text, terms)
    if words and len(words) == len(terms):
        return "Says the words you typed"
    signal = max(REASONS, key=lambda name: hit.signals.get(name, 0.0))
    if hit.signals.get(signal, 0.0) < SMALLEST_SHARE:
        return "The nearest there is"
    if signal == "words" and words:
        quoted = " and ".join(f"“{word}”" for word in list(words.values())[:WORDS_QUOTED])
        return f"Says {quoted}"
    return REASONS[signal]


def _words_in(text: str, terms: set[str]) -> dict[str, str]:
    """Which of the terms the text has, each as it first spells it."""
    found: dict[str, str] = {}
    if terms:
        language = language_of(text)
        for match in WORD.finditer(text, 0, SEARCHED_LENGTH):
            for term in terms & terms_of_word(match[0], language):
                found.setdefault(term, match[0])
            if len(found) == len(terms):
                break
    return found


def explained(hits: Sequence[Hit]) -> list[tuple[str, str]]:
    """Label and explanation of every signal that has a bar somewhere in `hits`."""
    drawn = {name for hit in hits for name, share in hit.signals.items() if _is_drawn(share)}
    return [words for name, words in SIGNALS.items() if name in drawn]


def _is_drawn(share: float) -> bool:
    return abs(share) >= SMALLEST_SHARE


def _bars(signals: Mapping[str, float], low: float, high: float) -> tuple[Bar, ...]:
    scale = 100 / ((high - low) or 1)
    return tuple(
        Bar(
            label=label_of(name),
            share=share,
            zero=round(-low * scale, 1),
            start=round((min(share, 0) - low) * scale, 1),
            width=round(abs(share) * scale, 1),
        )
        for name, share in signals.items()
        if _is_drawn(share)
    )

"""Phrases of time in a text: named times, and what prepositions and counts make of them.

"the week before 14 June", "between March and May", "since last summer", "the end of 2022": each
is a few words followed by a named time (`time_expressions`), or by another such phrase. At every
word the longest reading wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from language.english.dates import spans
from language.english.dates.meanings import amount_of
from language.english.dates.spans import (
    AMOUNTS,
    DAY,
    DAY_PARTS,
    DECADES,
    DIRECTIONS,
    FULL_WEEKDAYS,
    HOLIDAYS,
    MOMENT,
    MONTHS,
    OPEN_START,
    ORDINALS,
    PARTS,
    SEASONS,
    UNITS,
    WEEKDAYS,
    Span,
    one_of,
)
from language.english.dates.time_expressions import AMOUNT, COUNT, RULES, Kind

_DEPTH = 3  # "the end of the week before the start of May" is as deep as people talk.


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words about time and what they mean: one span, or more where they can be read in two ways."""

    spans: tuple[Span, ...]
    start_char: int
    end_char: int


_BARE = frozenset({Kind.MONTH, Kind.SEASON, Kind.THE_SEASON, Kind.HOLIDAY, Kind.WEEKDAY})
_ALL = frozenset(Kind) - {Kind.UNIT}
_DATES = frozenset({Kind.CLEAR, Kind.MONTH, Kind.WEEKDAY, Kind.YEAR})
# What may follow each preposition, besides expressions that are clear by themselves.
LEADS: dict[str, frozenset[Kind]] = {
    "in": frozenset({Kind.MONTH, Kind.NAME_MONTH, Kind.SEASON, Kind.THE_SEASON, Kind.YEAR}),
    "back in": frozenset({Kind.MONTH, Kind.NAME_MONTH, Kind.SEASON, Kind.THE_SEASON, Kind.YEAR}),
    "on": frozenset({Kind.WEEKDAY, Kind.HOLIDAY, Kind.DAY_OF_MONTH, Kind.WEEKEND}),
    "at": frozenset({Kind.HOLIDAY, Kind.WEEKEND}),
    "over": _BARE - {Kind.WEEKDAY} | {Kind.NAME_MONTH, Kind.WEEKEND},
    "during": _ALL,
    "throughout": _ALL,
    "as of": _ALL,
    "around": frozenset({Kind.MONTH, Kind.HOLIDAY, Kind.THE_SEASON, Kind.DAY_OF_MONTH}),
    "about": frozenset(),
    "by": frozenset({Kind.MONTH, Kind.HOLIDAY, Kind.WEEKDAY, Kind.DAY_OF_MONTH}),
    "for": frozenset({Kind.MONTH, Kind.HOLIDAY, Kind.THE_SEASON, Kind.WEEKDAY, Kind.WEEKEND}),
    "from": frozenset({Kind.MONTH, Kind.HOLIDAY, Kind.THE_SEASON, Kind.WEEKDAY, Kind.YEAR}),
    "between": frozenset({Kind.YEAR}),
    "of": frozenset({Kind.MONTH}),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Relation:
    """Words that, followed by a time, make another."""

    pattern: re.Pattern[str]
    build: Callable[[re.Match[str], Span, datetime], Span | None]
    kinds: frozenset[Kind]


def _since(_match: re.Match[str], anchor: Span, now: datetime) -> Span:
    return Span(anchor.start, max(now, anchor.end))


def _before(_match: re.Match[str], anchor: Span, _now: datetime) -> Span | None:
    return Span(OPEN_START, anchor.start) if anchor.start > OPEN_START else None


def _after(_match: re.Match[str], anchor: Span, now: datetime) -> Span:
    return Span(anchor.end, max(now, anchor.end + 30 * DAY))


def _until(_match: re.Match[str], anchor: Span, _now: datetime) -> Span | None:
    return Span(OPEN_START, anchor.end) if anchor.end > OPEN_START else None


def _part_of(match: re.Match[str], anchor: Span, _now: datetime) -> Span:
    return anchor.part(*PARTS[re.sub(r"[\s\-]+", " ", match["part"].lower())])


_NTH = {
    "first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4,
    "fifth": 5, "5th": 5, "last": -1, "final": -1,
}  # fmt: skip


def _nth_of(match: re.Match[str], anchor: Span, _now: datetime) -> Span | None:
    """ "The first week of April" is its days 1 to 7; "the last Friday of May" a day."""
    nth, unit = _NTH[match["nth"].lower()], match["unit"].lower()
    if unit in WEEKDAYS or unit == "weekend":
        weekday = WEEKDAYS.get(unit, 5)
        day = spans.nth_weekday(anchor.start, weekday, nth, anchor.end)
        found = spans.days(day, 2 if unit == "weekend" else 1)
    else:
        count = 1.0 if match["amount"] is None else amount_of(match)[1]
        found = _stretch(anchor, nth, count, unit)
    return found if anchor.start <= found.start < anchor.end else None


def _stretch(anchor: Span, nth: int, count: float, unit: str) -> Span:
    if nth < 0:
        return Span(spans.shift(anchor.end, -count, unit), anchor.end)
    start = spans.shift(anchor.start, (nth - 1) * count, unit)
    return Span(start, min(anchor.end, spans.shift(start, count, unit)))


def _unit_of(match: re.Match[str], anchor: Span, _now: datetime) -> Span:
    """ "The week of 5 May", "the morning of 5 May", "the month of May"."""
    unit = match["unit"].lower()
    if unit in DAY_PARTS:
        return spans.hours_of(anchor.start, *DAY_PARTS[unit])
    if anchor.end - anchor.start > 7 * DAY or unit == "day":
        return anchor
    return spans.unit_around(anchor.start, unit)


def _unit_beside(match: re.Match[str], anchor: Span, _now: datetime) -> Span:
    """ "The week before 14 June" ends there; "the Friday after 14 June" is the next one."""
    unit = match["unit"].lower()
    back = match["side"].lower() in ("before", "prior to", "preceding")
    edge = spans.midnight(anchor.start if back else anchor.end - MOMENT)
    if unit in WEEKDAYS or unit == "weekend":
        weekday, length = WEEKDAYS.get(unit, 5), 2 if unit == "weekend" else 1
        if not back:
            return spans.days(spans.weekday_after(edge, weekday), length)
        found = spans.weekday_before(edge, weekday)
        return spans.days(found, length)
    if unit in DAY_PARTS:
        return spans.hours_of(edge + (-DAY if back else DAY), *DAY_PARTS[unit])
    if back:
        return Span(spans.shift(anchor.start, -1, unit), anchor.start)
    return Span(anchor.end, spans.shift(anchor.end, 1, unit))


def _count_beside(match: re.Match[str], anchor: Span, _now: datetime) -> Span:
    low, high = amount_of(match)
    unit, about = match["unit"].lower(), bool(match["about"])
    if match["side"].lower() in ("before", "prior to"):
        return spans.count_off(anchor.start, -high, -low, unit, about=about)
    return spans.count_off(anchor.end - MOMENT, low, high, unit, about=about)


_SOME = rf"(?:(?P<amount>{AMOUNT})(?P<most>)(?P<half>) )?"
_RELATIONS: tuple[tuple[str, Callable[[re.Match[str], Span, datetime], Span | None]], ...] = (
    (r"(?:ever )?since ", _since),
    (r"(?:before|prior to|earlier than|up until|preceding) ", _before),
    (r"(?:after|following|later than) ", _after),
    (r"(?:until|till|up to|no later than) ", _until),
    (rf"(?:towards? |around |about |at |in |by )?(?:the )?(?:very )?(?P<part>{one_of(PARTS)})"
     r"(?: part)? of ", _part_of),
    (r"(?:in |by )?(?:the )?(?:very )?(?P<part>early|mid|late|middle)(?: part)?(?: of| in| on)? ",
     _part_of),
    (rf"(?:in |on |during |over |by )?(?:the )?(?P<nth>{one_of(_NTH)}) {_SOME}"
     rf"(?P<unit>day|week|weekend|month|quarter|year|{one_of(FULL_WEEKDAYS)})s? (?:of|in) ",
     _nth_of),
    (r"(?:in |on |during |over )?(?:the )?(?P<unit>day|week|weekend|month|year|"
     rf"{one_of(DAY_PARTS)}) of ", _unit_of),
    (rf"(?:in |on |during |over )?(?:the )?(?:last )?(?P<unit>day|week|weekend|month|year|"
     rf"{one_of(DAY_PARTS)}|{one_of(FULL_WEEKDAYS)}) "
     r"(?P<side>before|prior to|preceding|after|following) ", _unit_beside),
    (rf"{COUNT} (?P<unit>{one_of(UNITS)})s? (?P<side>before|prior to|after|following|from) ",
     _count_beside),
)  # fmt: skip
# A blank that ends a pattern must be followed by the next word, so no word boundary is asked for.
RELATIONS = tuple(
    Relation(
        re.compile(pattern.replace(" ", r"[\s\-]+"), re.IGNORECASE),
        build,
        frozenset(Kind) if build is _part_of else _ALL,
    )
    for pattern, build in _RELATIONS
)

_BETWEEN = re.compile(r"(?i)(?:in[\s\-]+)?(?P<word>between|from)\s+")
_UP_TO = re.compile(
    r"(?i)(?:\s*,)?\s+(?:to|through|thru|until|till|and)\s+(?:the\s+end\s+of\s+)?|\s*[-–—]\s*"
)
_AND = re.compile(r"(?i)(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+)(?:in\s+|on\s+)?")
_LEAD = re.compile(rf"(?P<lead>{one_of(LEADS)})[\s\-]+".replace(" ", r"[\s\-]+"), re.IGNORECASE)
# Fixed to a year by themselves or by `now`; the others float, and follow the range's other end.
_FIXED = re.compile(
    r"(?i)(?:1[89]|20)[0-9]{2}|\b(?:ago|back|last|past|previous|this|next|coming|yesterday|today|"
    r"tonight|tomorrow|the other)\b"
)
_STARTERS = {
    word.split()[0]
    for word in (
        *LEADS, *AMOUNTS, *MONTHS, *WEEKDAYS, *SEASONS, *HOLIDAYS, *DIRECTIONS, *PARTS, *_NTH,
        *UNITS, *DAY_PARTS, *DECADES, *(ordinal.replace("-", " ") for ordinal in ORDINALS),
        "the", "these", "ever", "since", "before", "prior", "preceding", "after", "following",
        "until", "till", "up", "no", "earlier", "later", "so", "sometime", "towards", "toward",
        "roughly", "approximately", "nearly", "almost", "more", "just", "maybe", "very", "today",
        "yesterday", "tomorrow", "tonight", "q1", "q2", "q3", "q4", "h1", "h2", "few", "couple",
    )
}  # fmt: skip
# Every phrase begins with one of these words or a digit; numbers within numbers begin none.
_FIRST_WORD = re.compile(
    rf"(?i)(?<![\w'])(?<![0-9][./:\-])(?:(?:{one_of(_STARTERS)})(?!\w)|(?=[0-9])|(?='[0-9]))"
)
# Without any of these no rule can match; most texts are done here.
_TIME_WORD = re.compile(
    rf"\b(?:{one_of((*MONTHS, *WEEKDAYS, *SEASONS, *HOLIDAYS, *UNITS, *DAY_PARTS, *DECADES))}"
    r"|today|tonight|yesterday|tomorrow|q[1-4]|h[12])".replace(" ", r"[\s\-]+")
    + r"|[0-9]{4}|'[0-9]{2}|[0-9]0s|[0-9]/[0-9]|[0-9][./\-][0-9]|[0-9](?:st|[nr]d|th)\b",
    re.IGNORECASE,
)


def read_phrases(text: str, now: datetime) -> Iterator[Phrase]:
    """The phrases of time in `text`, in order; `now` is the wall clock, without a zone."""
    if not _TIME_WORD.search(text):
        return
    position = 0
    while word := _FIRST_WORD.search(text, position):
        found = _read_free(text, word.start(), now)
        if found is None:
            position = word.start() + 1
            continue
        yield found
        position = found.end_char
        for further in _coordinated(text, found.end_char, now):
            yield further
            position = further.end_char


def _coordinated(text: str, position: int, now: datetime) -> Iterator[Phrase]:
    """ "In March and April", "in 2021, 2022 or 2023": what needs no preposition of its own."""
    while (joint := _AND.match(text, position)) and (
        found := _read_rules(text, joint.end(), now, _DATES)
    ):
        yield found
        position = found.end_char


def _read_free(text: str, position: int, now: datetime) -> Phrase | None:
    clear = frozenset({Kind.CLEAR})
    readings = [
        _read_range(text, position, now),
        *_read_relations(text, position, now, 0),
        _read_led(text, position, now),
        _read_rules(text, position, now, clear),
    ]
    best = _longest(readings)
    return _extended(text, best, now) if best else None


def _read_led(text: str, position: int, now: datetime) -> Phrase | None:
    """A preposition that leaves the time as it is: "in March", "over Christmas"."""
    lead = _LEAD.match(text, position)
    if lead is None:
        return None
    kinds = LEADS[re.sub(r"[\s\-]+", " ", lead["lead"].lower())] | {Kind.CLEAR}
    found = _longest(
        [_read_rules(text, lead.end(), now, kinds), *_read_relations(text, lead.end(), now, 1)]
    )
    return Phrase(found.spans, position, found.end_char) if found else None


def _read_operand(
    text: str, position: int, now: datetime, kinds: frozenset[Kind], depth: int
) -> Phrase | None:
    if depth >= _DEPTH:
        return None
    return _longest(
        [*_read_relations(text, position, now, depth), _read_rules(text, position, now, kinds)]
    )


def _read_relations(text: str, position: int, now: datetime, depth: int) -> Iterator[Phrase]:
    for relation in RELATIONS:
        match = relation.pattern.match(text, position)
        if match is None:
            continue
        operand = _read_operand(text, match.end(), now, relation.kinds, depth + 1)
        if operand is not None:
            span = _built(relation.build, match, operand.spans[0], now)
            if span:
                yield Phrase((span,), position, operand.end_char)


def _read_rules(text: str, position: int, now: datetime, kinds: frozenset[Kind]) -> Phrase | None:
    best: Phrase | None = None
    for rule in RULES:
        if rule.kind not in kinds:
            continue
        match = rule.pattern.match(text, position)
        if match is None or (best is not None and match.end() <= best.end_char):
            continue
        meaning = _meant(rule.build, match, now)
        if meaning:
            best = Phrase(meaning, position, match.end())
    return best


def _read_range(text: str, position: int, now: datetime) -> Phrase | None:
    """ "Between March and May", "from 11 June to the end of August 2022"."""
    lead = _BETWEEN.match(text, position)
    first = _read_operand(text, lead.end(), now, _ALL, 1) if lead else None
    if lead is None or first is None:
        return None
    return _joined(text, lead.end(), first, position, now, _ALL)


def _extended(text: str, first: Phrase, now: datetime) -> Phrase:
    """ "June to August", "3 June - 5 July": a range without a preposition."""
    joint = _UP_TO.match(text, first.end_char)
    if joint is None or "and" in joint[0].lower():
        return first
    whole = _joined(text, first.start_char, first, first.start_char, now, _DATES)
    return whole or first


def _joined(
    text: str, at: int, first: Phrase, start_char: int, now: datetime, kinds: frozenset[Kind]
) -> Phrase | None:
    joint = _UP_TO.match(text, first.end_char)
    second = _read_operand(text, joint.end(), now, kinds, 1) if joint else None
    if joint is None or second is None:
        return None
    try:
        first, second = _settle(text, at, first, joint.end(), second)
    except OverflowError:  # At the very edge of the calendar.
        return None
    start, end = first.spans[0].start, second.spans[0].end
    if start >= end:
        return None
    return Phrase((Span(start, end),), start_char, second.end_char)


def _settle(
    text: str, at: int, first: Phrase, second_at: int, second: Phrase
) -> tuple[Phrase, Phrase]:
    """Give the end that names no year the year of the other."""
    if not _FIXED.search(text, at, first.end_char):
        return _again(text, at, first, second.spans[0].end - MOMENT), second
    if not _FIXED.search(text, second_at, second.end_char):
        return first, _again(text, second_at, second, first.spans[0].start + 364 * DAY)
    return first, second


def _again(text: str, position: int, phrase: Phrase, clock: datetime) -> Phrase:
    """The same words read at another time; as before if they then read otherwise."""
    found = _read_operand(text, position, clock, _ALL, 1)
    return found if found and found.end_char == phrase.end_char else phrase


def _longest(readings: list[Phrase | None]) -> Phrase | None:
    return max(
        (reading for reading in readings if reading), key=lambda found: found.end_char, default=None
    )


def _meant(
    build: Callable[[re.Match[str], datetime], Span | tuple[Span, ...] | None],
    match: re.Match[str],
    now: datetime,
) -> tuple[Span, ...]:
    try:
        meaning = build(match, now)
    except (ValueError, OverflowError):  # 31 June, or a year the calendar does not have.
        return ()
    found = (meaning,) if isinstance(meaning, Span) else meaning or ()
    return tuple(span for span in found if span.start < span.end)


def _built(
    build: Callable[[re.Match[str], Span, datetime], Span | None],
    match: re.Match[str],
    anchor: Span,
    now: datetime,
) -> Span | None:
    try:
        span = build(match, anchor, now)
    except (ValueError, OverflowError):
        return None
    return span if span and span.start < span.end else None

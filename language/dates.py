"""What a question says about when, in the language that it is asked in.

English has rules of its own. In other languages spoken dates are read first ("vorgestern", "la
semana pasada", "三天前"), and dateparser reads the rest. The words of spoken dates are data, one
entry a language, because dateparser loses most of such phrases when it searches a question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from language.analyzer import ENGLISH, language_of
from language.english.dates import Period, TimeIntent
from language.english.dates import read_time as read_english_time

if TYPE_CHECKING:
    # Imported where it is used: it takes half a second, and English does without it.
    from dateparser.date import DateDataParser

# Written without spaces between words.
_UNSPACED = ("ja", "zh", "ko")
_DAY = timedelta(days=1)
# "2024年3月5日", with or without a day, a month or a year.
_CALENDAR = (
    r"(?:(?P<y>(?:19|20)\d\d)\s*[年년]\s*)?(?P<m>1[0-2]|0?[1-9])\s*[月월](?:\s*(?P<d>3[01]|[12]\d|0?[1-9])"
    r"\s*[日号號일])?|(?P<only_y>(?:19|20)\d\d)\s*[年년]"
)
Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of time from `start` up to `end` in the text, and the period that it means."""

    start: int
    end: int
    span: Span


def spoken_dates(text: str, language: str, wall: datetime) -> Iterator[Phrase]:
    """The phrases of a text in its order, as said at `wall`, naive; none in other languages.

    What a phrase means beyond the calendar's ends is left out.
    """
    pattern = _pattern(language)
    if pattern is None:
        return
    for match in pattern.finditer(text.lower() if len(text.lower()) == len(text) else text):
        try:
            span = _spoken_span(match, language, wall)
        except (OverflowError, ValueError):
            continue
        yield Phrase(match.start(), match.end(), span)


def whole(unit: str, day: datetime) -> Span:
    """The day, week from Monday, month or year that a day is in.

    Raises:
        OverflowError, ValueError: it reaches beyond the calendar's ends.
    """
    day = day.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if unit == "week":
        day -= day.weekday() * _DAY
        return day, day + 7 * _DAY
    if unit == "month":
        first = day.replace(day=1)
        return first, (first + 32 * _DAY).replace(day=1)
    if unit == "year":
        first = day.replace(month=1, day=1)
        return first, first.replace(year=first.year + 1)
    return day, day + _DAY


def _spoken_span(match: re.Match[str], language: str, wall: datetime) -> Span:
    name, found = match.lastgroup or "", match.group
    if name == "calendar":
        return _of_calendar(match, wall)
    kind, _, rest = name.partition("_")
    if kind == "days":
        return whole("day", wall - int(rest.partition("_")[0]) * _DAY)
    if kind in ("on", "onlast"):
        weekday = _which(_words(language)["weekdays"], found("weekday_" + rest))
        back = wall.weekday() - weekday + 7 if kind == "onlast" else (wall.weekday() - weekday) % 7
        return whole("day", wall - (back or 7) * _DAY)
    unit = _unit_of(language, found("unit_" + rest))
    number = {"last": 1, "this": 0}.get(kind)
    if number is not None and unit == "day":
        raise ValueError("The last day of something is not yesterday.")
    if number is None:
        number = _number(language, found("number_" + rest))
    return whole(unit, _ago(unit, number, wall))


def _of_calendar(match: re.Match[str], wall: datetime) -> Span:
    only, year, month, day = (match[name] for name in ("only_y", "y", "m", "d"))
    if only:
        return whole("year", datetime(int(only), 1, 1))  # noqa: DTZ001 - naive, like `wall`.
    moment = datetime(int(year or wall.year), int(month), int(day or 1))  # noqa: DTZ001
    if not year and moment > wall:
        moment = moment.replace(year=moment.year - 1)
    return whole("day" if day else "month", moment)


def _ago(unit: str, number: int, wall: datetime) -> datetime:
    if unit in ("day", "week"):
        return wall - number * (7 if unit == "week" else 1) * _DAY
    months = wall.year * 12 + wall.month - 1 - number * (12 if unit == "year" else 1)
    return wall.replace(year=months // 12, month=months % 12 + 1, day=1)


def _number(language: str, text: str) -> int:
    return int(text) if text.isdecimal() else _which(_words(language)["numbers"], text) + 1


def _unit_of(language: str, text: str) -> str:
    units: Mapping[str, str] = _words(language)["units"]
    return next(unit for unit, form in units.items() if re.fullmatch(form, text))


def _which(forms: list[str], text: str) -> int:
    return next(at for at, form in enumerate(forms) if re.fullmatch(form, text))


@cache
def _all_words() -> Mapping[str, Any]:
    path = Path(__file__).with_name("spoken_dates.json")
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _words(language: str) -> Mapping[str, Any]:
    words: Mapping[str, Any] = _all_words()[language]
    return words


@cache
def _pattern(language: str) -> re.Pattern[str] | None:
    """One alternative a phrase, each a group named for its kind; the longest kinds come first."""
    if language not in _all_words():
        return None
    unspaced = language in _UNSPACED
    parts = list(_alternatives(_words(language)))
    if unspaced:
        parts.append(f"(?P<calendar>{_CALENDAR})")
    whole_words = ("", "") if unspaced else (r"(?<!\w)", r"(?!\w)")
    return re.compile(f"{whole_words[0]}(?:{'|'.join(parts)}){whole_words[1]}")


def _alternatives(words: Mapping[str, Any]) -> Iterator[str]:
    units = words["units"]
    forms = {
        "unit": "|".join(units.values()),
        "year": units["year"],
        # "Twenty-two" is not two: a number that another one precedes is left to others.
        "number": "".join(f"(?<!{each})" for each in words.get("tens", ()))
        + rf"(?:\d{{1,3}}|{'|'.join(words['numbers'])})",
        "weekday": "|".join(words["weekdays"]),
    }
    kinds = {"onlast": "on_last_week", "on": "on", "ago": "ago", "last": "last", "this": "this"}
    at = 0
    for kind, key in kinds.items():
        for template in words.get(key, ()):
            at += 1
            yield f"(?P<{kind}_{at}>{_filled(template, forms, at)})"
    for form, back in words["days"].items():
        at += 1
        yield f"(?P<days_{back}_{at}>{form})"


def _filled(template: str, forms: Mapping[str, str], at: int) -> str:
    """A template whose blanks are groups, numbered so that each name is there once."""
    for blank, form in forms.items():
        name = "unit" if blank == "year" else blank
        template = template.replace(f"{{{blank}}}", f"(?P<{name}_{at}>{form})")
    return template.replace(" ", r"\s+").replace(r"\s+?", r"\s*")


# Characters of a question that are read; a pasted text is no question.
_READ_CHARS = 300
_DIGIT = re.compile(r"\d")
# "am 3. Mai", "2024": a word of some length, or a year. A number alone is no date.
_DATED = re.compile(r"[^\W\d_]{3,}|[㐀-鿿가-힣ऀ-ॿ]{2,}|\b(?:19|20)\d\d\b")


def read_time(question: str, now: datetime) -> TimeIntent:
    """Read the phrases of time in `question` as someone says them at `now`, aware.

    In languages other than English, only periods are read. Never raises for any text.
    """
    language = language_of(question)
    if language == ENGLISH or not _is_known(language):
        return read_english_time(question, now)
    return TimeIntent(tuple(_periods(question[:_READ_CHARS], language, now)))


def _periods(question: str, language: str, now: datetime) -> Iterator[Period]:
    from dateparser.search import search_dates  # noqa: PLC0415 - see above.

    wall, end = now.replace(tzinfo=None), 0
    spoken = list(spoken_dates(question, language, wall))
    for each in spoken:
        first, last = (moment.replace(tzinfo=now.tzinfo) for moment in each.span)
        yield Period(first, last, question[each.start : each.end], each.start, each.end)
        blank = " " * (each.end - each.start)
        question = question[: each.start] + blank + question[each.end :]
    found = search_dates(question, languages=[language], settings=_settings(wall)) or ()
    for phrase, moment in found:
        start = question.find(phrase, end)
        if start < 0 or not _DATED.search(phrase):
            continue
        end = start + len(phrase)
        if (unit := _unit(phrase, language, wall)) and (span := _span(moment, unit)):
            first, last = (each.replace(tzinfo=now.tzinfo) for each in span)
            yield Period(first, last, phrase, start, end)


def _unit(phrase: str, language: str, wall: datetime) -> str:
    """`day`, `week`, `month` or `year`; empty for a number word that only looks like a day."""
    read = _parser(language, wall).get_date_data(phrase)
    if read.date_obj is None:
        return "day"  # A day that only the search reads: "am Montag".
    if read.period != "day" or _DIGIT.search(phrase):
        return "day" if read.period == "time" else str(read.period)
    relative = _parser(language, wall, ("relative-time",)).get_date_data(phrase)
    return "day" if relative.date_obj else ""


def _span(moment: datetime, unit: str) -> tuple[datetime, datetime] | None:
    """The whole day, week from Monday, month or year of a moment; None at the calendar's ends."""
    try:
        return whole(unit, moment)
    except (OverflowError, ValueError):
        return None


def _parser(language: str, wall: datetime, parsers: tuple[str, ...] = ()) -> DateDataParser:
    from dateparser.date import DateDataParser  # noqa: PLC0415

    settings = {**_settings(wall), **({"PARSERS": list(parsers)} if parsers else {})}
    return DateDataParser(languages=[language], settings=settings)


def _settings(wall: datetime) -> dict[str, Any]:
    return {"RELATIVE_BASE": wall, "PREFER_DATES_FROM": "past"}


@cache
def _is_known(language: str) -> bool:
    from dateparser.date import DateDataParser  # noqa: PLC0415

    try:
        DateDataParser(languages=[language])
    except ValueError:
        return False
    return True

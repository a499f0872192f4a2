"""What a question says about when, in the language that it is asked in.

English has rules of its own; in other languages spoken dates are read first, and dateparser
reads the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

from dateparser.date import DateDataParser
from dateparser.search import search_dates

from language.detection import ENGLISH, language_of
from language.english.dates.time_intent import Period, TimeIntent
from language.english.dates.time_intent import read_time as read_english_time
from language.spoken_dates import spoken_dates, whole

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
    settings = {**_settings(wall), **({"PARSERS": list(parsers)} if parsers else {})}
    return DateDataParser(languages=[language], settings=settings)


def _settings(wall: datetime) -> dict[str, Any]:
    return {"RELATIVE_BASE": wall, "PREFER_DATES_FROM": "past"}


@cache
def _is_known(language: str) -> bool:
    try:
        DateDataParser(languages=[language])
    except ValueError:
        return False
    return True

"""The words of time, as data, and stretches of the calendar with the arithmetic on them.

Everything here is wall-clock time without a zone: the zone of the asker's `now` is put back at the
end, so that "yesterday" is a day of 23 or 25 hours where the clocks change. What falls outside the
years 1 to 9999 raises ValueError or OverflowError, as `datetime` does; the reader of
phrases catches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

MONTHS = {
    "january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4,
    "may": 5, "june": 6, "jun": 6, "july": 7, "jul": 7, "august": 8, "aug": 8,
    "september": 9, "sept": 9, "sep": 9, "october": 10, "oct": 10, "november": 11, "nov": 11,
    "december": 12, "dec": 12,
}  # fmt: skip
# Words that mean a month wherever they stand.
PLAIN_MONTHS = ("january", "february", "july", "september", "october", "november", "december")
# First names as well: only a preposition that people do not follow makes them a month.
NAME_MONTHS = ("april", "apr", "june", "jun", "august", "aug", "jan", "dec")

WEEKDAYS = {
    "monday": 0, "mon": 0, "tuesday": 1, "tues": 1, "tue": 1, "wednesday": 2, "weds": 2, "wed": 2,
    "thursday": 3, "thurs": 3, "thur": 3, "thu": 3, "friday": 4, "fri": 4, "saturday": 5, "sat": 5,
    "sunday": 6, "sun": 6,
}  # fmt: skip
# "Sun" and "sat" are too common as other words to name a day unless a date follows.
SPOKEN_WEEKDAYS = tuple(day for day in WEEKDAYS if day not in ("sat", "sun"))
FULL_WEEKDAYS = tuple(day for day in WEEKDAYS if day.endswith("day"))

# First month of each season of the northern hemisphere; each lasts three.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

# What comes as a fixed day and lasts some: (month, day, days).
FIXED_HOLIDAYS = {
    "new year's eve": (12, 31, 1), "new years eve": (12, 31, 1), "new year's day": (1, 1, 1),
    "new year's": (1, 1, 1), "new years": (1, 1, 1), "new year": (1, 1, 1),
    "valentine's day": (2, 14, 1), "valentines day": (2, 14, 1), "valentine's": (2, 14, 1),
    "st patrick's day": (3, 17, 1), "st. patrick's day": (3, 17, 1),
    "saint patrick's day": (3, 17, 1), "april fools' day": (4, 1, 1), "april fool's day": (4, 1, 1),
    "earth day": (4, 22, 1), "juneteenth": (6, 19, 1), "canada day": (7, 1, 1),
    "independence day": (7, 4, 1), "fourth of july": (7, 4, 1), "bastille day": (7, 14, 1),
    "halloween": (10, 31, 1), "bonfire night": (11, 5, 1), "veterans day": (11, 11, 1),
    "christmas eve": (12, 24, 1), "christmas day": (12, 25, 1), "boxing day": (12, 26, 1),
    "christmas": (12, 25, 1), "xmas": (12, 25, 1), "holiday season": (12, 15, 18),
    "christmas break": (12, 18, 18), "the holidays": (12, 18, 16),
    # The moon moves these: the days on which they can fall stand for them.
    "lunar new year": (1, 21, 31), "chinese new year": (1, 21, 31), "holi": (3, 1, 29),
    "diwali": (10, 14, 33), "hanukkah": (11, 27, 37),
}  # fmt: skip
# The n-th weekday of a month, -1 the last: (month, weekday, n, days, days off that weekday).
MOVING_HOLIDAYS = {
    "super bowl sunday": (2, 6, 2, 1, 0), "mother's day": (5, 6, 2, 1, 0),
    "mothers day": (5, 6, 2, 1, 0), "father's day": (6, 6, 3, 1, 0),
    "fathers day": (6, 6, 3, 1, 0), "memorial day": (5, 0, -1, 1, 0),
    "labor day": (9, 0, 1, 1, 0), "labour day": (9, 0, 1, 1, 0), "columbus day": (10, 0, 2, 1, 0),
    "thanksgiving": (11, 3, 4, 1, 0), "thanksgiving day": (11, 3, 4, 1, 0),
    "black friday": (11, 3, 4, 1, 1), "cyber monday": (11, 3, 4, 1, 4),
}  # fmt: skip
# Days from Easter Sunday, and how long.
EASTER_HOLIDAYS = {
    "mardi gras": (-47, 1), "ash wednesday": (-46, 1), "palm sunday": (-7, 1),
    "good friday": (-2, 1), "easter sunday": (0, 1), "easter monday": (1, 1),
    "easter weekend": (-2, 4), "easter break": (-9, 18), "easter": (0, 1), "pentecost": (49, 1),
}  # fmt: skip
HOLIDAYS = (*FIXED_HOLIDAYS, *MOVING_HOLIDAYS, *EASTER_HOLIDAYS)
# Names that say "a day" themselves need no preposition: "what did I do Valentine's Day?"
DAY_HOLIDAYS = tuple(name for name in HOLIDAYS if name.endswith((" day", " eve", "of july")))

# Hours from midnight; past 24 is the next day's small hours.
DAY_PARTS = {
    "morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30),
}  # fmt: skip

# Which share of a period its parts take.
PARTS = {
    "start": (0.0, 0.2), "beginning": (0.0, 0.2), "turn": (0.0, 0.1), "early": (0.0, 1 / 3),
    "mid": (1 / 3, 2 / 3), "middle": (1 / 3, 2 / 3), "late": (2 / 3, 1.0), "end": (0.8, 1.0),
    "close": (0.8, 1.0), "first half": (0.0, 0.5), "second half": (0.5, 1.0),
    "latter half": (0.5, 1.0), "first part": (0.0, 0.4), "latter part": (0.6, 1.0),
}  # fmt: skip

NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100,
}  # fmt: skip
# How many, at least and at most.
AMOUNTS = {
    **{word: (float(value), float(value)) for word, value in NUMBERS.items()},
    "a": (1.0, 1.0), "an": (1.0, 1.0), "a single": (1.0, 1.0), "half a": (0.5, 0.5),
    "half an": (0.5, 0.5), "one and a half": (1.5, 1.5), "two and a half": (2.5, 2.5),
    "three and a half": (3.5, 3.5), "a couple of": (2.0, 3.0), "a couple": (2.0, 3.0),
    "couple of": (2.0, 3.0), "couple": (2.0, 3.0), "a few": (2.0, 5.0), "few": (2.0, 5.0),
    "a dozen": (12.0, 12.0), "several": (3.0, 8.0), "some": (2.0, 8.0),
    "a number of": (3.0, 8.0), "twenty one": (21.0, 21.0), "forty five": (45.0, 45.0),
}  # fmt: skip

# Units back or on from the one that holds the moment of asking.
DIRECTIONS = {
    "last": -1, "past": -1, "previous": -1, "this past": -1, "this": 0, "current": 0,
    "next": 1, "coming": 1, "upcoming": 1, "this coming": 1,
}  # fmt: skip

ORDINALS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
        "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth "
        "twenty-first twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth "
        "twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first".split(),
        start=1,
    )
}
DECADES = {
    word: 1920 + 10 * number
    for number, word in enumerate(
        "twenties thirties forties fifties sixties seventies eighties nineties".split()
    )
}

# What is counted in thousands, lest "in 2000 steps" be a year.
COUNTED = (
    "words", "steps", "calories", "kcal", "people", "users", "dollars", "euros", "pounds",
    "bucks", "usd", "km", "miles", "meters", "metres", "ml", "mg", "grams", "kg", "watts", "pieces",
    "points", "followers", "times", "rows", "lines", "characters", "tokens", "days", "hours",
)  # fmt: skip

# Singular names of units; "fortnight", "decade" and "quarter" are reckoned in weeks, years, months.
UNITS = (
    "minute", "hour", "day", "night", "week", "weekend", "fortnight", "month", "quarter",
    "semester", "year", "decade",
)  # fmt: skip


def one_of(words: Iterable[str]) -> str:
    """A regular expression for any of the words, the longest first; blanks as in `phrase`."""
    escaped = (re.escape(word).replace(r"\ ", " ") for word in words)
    return "|".join(sorted(escaped, key=len, reverse=True)).replace(r"\-", " ")


def phrase(pattern: str) -> re.Pattern[str]:
    """Compile `pattern` as whole words of either case; its blanks stand for blanks or hyphens."""
    return re.compile(rf"(?:{pattern})(?!\w)".replace(" ", r"[\s\-]+"), re.IGNORECASE)


# Where "before …" begins: earlier than any conversation.
OPEN_START = datetime(1900, 1, 1)  # noqa: DTZ001 - Wall-clock time, as all of this module.
DAY = timedelta(days=1)
MOMENT = timedelta(seconds=1)
_MONTHS_IN = {"month": 1, "quarter": 3, "semester": 6, "year": 12, "decade": 120}
_TIME_IN = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": DAY,
    "night": DAY,
    "week": 7 * DAY,
    "weekend": 7 * DAY,
    "fortnight": 14 * DAY,
}
# How far off a count of two units may be: "two weeks ago" is seldom fourteen days to the hour.
_SLACK = {
    "minute": timedelta(minutes=5),
    "hour": timedelta(minutes=30),
    "week": 3 * DAY,
    "weekend": 3 * DAY,
    "fortnight": 5 * DAY,
    "month": 15 * DAY,
    "quarter": 30 * DAY,
    "semester": 45 * DAY,
    "year": 150 * DAY,
    "decade": 1000 * DAY,
}


@dataclass(frozen=True, slots=True)
class Span:
    """From `start` up to and without `end`."""

    start: datetime
    end: datetime

    def part(self, low: float, high: float) -> Span:
        """The stretch between two shares of it: in whole months of a season or more."""
        width = self.end - self.start
        start, end = self.start + low * width, self.start + high * width
        if width > 80 * DAY:
            return Span(_nearest_month(start), _nearest_month(end))
        if width < 2 * DAY:
            return Span(start, end)
        # "The end of last week" begins on Friday: a fifth of a week is less than people mean.
        start, end = min(start, self.end - 3 * DAY), max(end, self.start + 3 * DAY)
        return Span(midnight(start + DAY / 2), midnight(end + DAY / 2))


Yearly = Callable[[int], Span]


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def days(moment: datetime, count: int = 1) -> Span:
    """The day of `moment` and those after it, `count` in all."""
    start = midnight(moment)
    return Span(start, start + count * DAY)


def _nearest_month(moment: datetime) -> datetime:
    return add_months(midnight(moment.replace(day=1)), int(moment.day > 15))


def date(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day)  # noqa: DTZ001 - Wall-clock time, as all of this module.


def month_of(year: int, month: int, count: int = 1) -> Span:
    start = date(year, month, 1)
    return Span(start, add_months(start, count))


def year_of(year: int, count: int = 1) -> Span:
    return Span(date(year, 1, 1), date(year + count, 1, 1))


def add_months(moment: datetime, count: int) -> datetime:
    """The same day so many months on, or the month's last where it is shorter."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
    for last_day in (31, 30, 29):
        try:
            return moment.replace(year=year, month=month + 1, day=min(moment.day, last_day))
        except ValueError:
            continue
    return moment.replace(year=year, month=month + 1, day=min(moment.day, 28))


def shift(moment: datetime, count: float, unit: str) -> datetime:
    if unit in _TIME_IN:
        return moment + count * _TIME_IN[unit]
    months = count * _MONTHS_IN[unit]
    whole = int(months)
    return add_months(moment, whole) + (months - whole) * 30 * DAY


def count_off(origin: datetime, low: float, high: float, unit: str, *, about: bool = False) -> Span:
    """Around `low` to `high` units from `origin`; negative counts look back, `low` below `high`.

    The further off, the less exactly people count: the slack grows with the number of units.
    """
    if unit == "year" and low % 1:
        low, high, unit = low * 12, high * 12, "month"
    slack = _SLACK.get(unit, timedelta()) * min(0.5 + 0.25 * min(abs(low), abs(high)), 2.0)
    if low != high:
        slack /= 2
    if about:
        slack = max(slack * 1.5, DAY if unit in ("day", "night") else slack)
    if unit in ("minute", "hour"):
        return Span(shift(origin, low, unit) - slack, shift(origin, high, unit) + slack)
    noon = midnight(origin) + DAY / 2  # So that the slack is the same before and after.
    start, end = shift(noon, low, unit) - slack, shift(noon, high, unit) + slack
    return Span(midnight(start), midnight(end - MOMENT) + DAY)


def unit_around(moment: datetime, unit: str, offset: int = 0) -> Span:
    """The calendar's week (from Monday), month … of `moment`, or the one `offset` further."""
    if unit in _MONTHS_IN:
        months = _MONTHS_IN[unit]
        first = (moment.year * 12 + moment.month - 1) // months * months + offset * months
        return month_of(first // 12, first % 12 + 1, months)
    today = midnight(moment)
    if unit in ("minute", "hour"):
        start = shift(moment, offset, unit)
        return Span(start, start + _TIME_IN[unit])
    if unit == "day":
        return days(today + offset * DAY)
    if unit == "night":
        return hours_of(today + offset * DAY, 18, 30)
    monday = today - today.weekday() * DAY + offset * _TIME_IN[unit]
    if unit == "weekend":
        return days(monday + 5 * DAY, 2)
    return Span(monday, monday + _TIME_IN[unit])


def hours_of(day: datetime, first: int, last: int) -> Span:
    start = midnight(day)
    return Span(start + timedelta(hours=first), start + timedelta(hours=last))


def weekday_before(moment: datetime, weekday: int, nth: int = 1) -> datetime:
    """The n-th such weekday before the day of `moment`."""
    back = (moment.weekday() - weekday - 1) % 7 + 1 + 7 * (nth - 1)
    return midnight(moment) - back * DAY


def weekday_after(moment: datetime, weekday: int, nth: int = 1) -> datetime:
    return midnight(moment) + ((weekday - moment.weekday() - 1) % 7 + 1 + 7 * (nth - 1)) * DAY


def nth_weekday(start: datetime, weekday: int, nth: int, end: datetime) -> datetime:
    """The n-th such weekday from `start` on; -1 is the last before `end`."""
    if nth < 0:
        return weekday_before(end, weekday, -nth)
    return weekday_after(start - DAY, weekday, nth)


def season_of(name: str) -> Yearly:
    return lambda year: month_of(year, SEASONS[name], 3)


def easter(year: int) -> datetime:
    """Easter Sunday of the Gregorian calendar (the anonymous algorithm in Meeus, 1991)."""
    century, rest = divmod(year, 100)
    golden = year % 19
    skipped = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - century // 4 - skipped + 15) % 30
    to_sunday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    late = (golden + 11 * epact + 22 * to_sunday) // 451
    month, day = divmod(epact + to_sunday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def holiday_of(name: str) -> Yearly:
    """Raises KeyError: `name` is not in the tables of holidays."""
    if name in FIXED_HOLIDAYS:
        month, day, length = FIXED_HOLIDAYS[name]
        return lambda year: days(date(year, month, day), length)
    if name in MOVING_HOLIDAYS:
        return lambda year: _moving_holiday(year, *MOVING_HOLIDAYS[name])
    off, lasts = EASTER_HOLIDAYS[name]
    return lambda year: days(easter(year) + off * DAY, lasts)


def _moving_holiday(year: int, month: int, weekday: int, nth: int, length: int, off: int) -> Span:
    whole = month_of(year, month)
    return days(nth_weekday(whole.start, weekday, nth, whole.end) + off * DAY, length)


def _occurrences(yearly: Yearly, years: range) -> Iterator[Span]:
    for year in years:
        try:
            yield yearly(year)
        except ValueError:  # 29 February, or a year the calendar does not have.
            continue


def latest(yearly: Yearly, now: datetime) -> Span | None:
    """The newest that has begun."""
    around = _occurrences(yearly, range(now.year + 1, now.year - 9, -1))
    return next((span for span in around if span.start <= now), None)


def latest_over(yearly: Yearly, now: datetime) -> Span | None:
    """The newest that is over."""
    around = _occurrences(yearly, range(now.year + 1, now.year - 9, -1))
    return next((span for span in around if span.end <= now), None)


def coming(yearly: Yearly, now: datetime) -> Span | None:
    """The next to begin."""
    around = _occurrences(yearly, range(now.year - 1, now.year + 9))
    return next((span for span in around if span.start > now), None)


def nearest(yearly: Yearly, now: datetime) -> Span | None:
    """The one whose start is closest to `now`, or that holds it."""
    around = list(_occurrences(yearly, range(now.year - 1, now.year + 2)))
    return min(around, key=lambda span: _distance(span, now), default=None)


def _distance(span: Span, moment: datetime) -> timedelta:
    return max(span.start - moment, moment - span.end, timedelta())

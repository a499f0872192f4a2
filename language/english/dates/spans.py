"""Stretches of the calendar and the arithmetic on them.

Everything here is wall-clock time without a zone: the zone of the asker's `now` is put back at the
end, so that "yesterday" is a day of 23 or 25 hours where the clocks change. What falls outside the
years 1 to 9999 raises ValueError or OverflowError, as `datetime` does; the reader of
phrases catches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from language.english.dates.words import EASTER_HOLIDAYS, FIXED_HOLIDAYS, MOVING_HOLIDAYS, SEASONS

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

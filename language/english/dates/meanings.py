"""What expressions of time mean: from a match and the wall clock to a span.

Each returns None where the words mean something else ("march 2 miles", "would it last two weeks").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from language.english.dates import spans
from language.english.dates.spans import (
    AMOUNTS,
    DAY,
    DAY_PARTS,
    DECADES,
    DIRECTIONS,
    MONTHS,
    ORDINALS,
    WEEKDAYS,
    Span,
)

Builder = Callable[[re.Match[str], datetime], Span | tuple[Span, ...] | None]

_HABIT = re.compile(
    r"(?:\b(?:an?|every|each|any|most|my|his|her|our|their|your|named|called)"
    r"|\b(?!I\b)[A-Z]\w*)(?:\s+[a-z]\w*)?[\s\-]*$"
)
_POSSESSIVE = re.compile(r"(?i)\b(?:my|his|her|our|their|your|its)\s+$")
_VERB_LAST = re.compile(
    r"(?i)\b(?:to|did|do|it|only|may|usually)\s+$"
    r"|\b(?:would|will|does|could|can|should|might)\s+(?:\w+\s+){0,3}$"
)
_DATE_BEFORE = re.compile(
    r"(?i)\b(?:on|since|before|after|until|till|by|from|between|and|to|of|in|around|through)\s+$"
    r"|,\s*$"
)


def _said_before(match: re.Match[str], pattern: re.Pattern[str]) -> bool:
    return pattern.search(match.string, max(0, match.start() - 40), match.start()) is not None


def _word(match: re.Match[str], group: str) -> str:
    """The group as the tables spell it: lower case, single blanks."""
    return re.sub(r"[\s\-]+", " ", match[group].lower())


def _day_number(text: str) -> int:
    digits = re.match("[0-9]+", text)
    return int(digits[0]) if digits else ORDINALS[re.sub(r"[\s\-]+", "-", text.lower())]


def _year_number(text: str, now: datetime) -> int:
    if text.startswith("'"):
        return _full_year(int(text[1:]), now)
    if text[0].isdigit():
        return int(text)
    word = text.lower().split()
    return now.year + DIRECTIONS.get(word[0], DIRECTIONS.get(word[1], 0))


def _full_year(year: int, now: datetime) -> int:
    """2023 for 23: of this century unless that lies more than ten years ahead."""
    if year > 99:
        return year
    century = now.year // 100 * 100
    return century + year if century + year <= now.year + 10 else century - 100 + year


def amount_of(match: re.Match[str]) -> tuple[float, float]:
    """At least and at most how many, from the groups `amount`, `most` and `half`."""
    low, high = _amount(match["amount"])
    if match["most"]:
        high = max(high, _amount(match["most"])[1])
    extra = 0.5 if match["half"] else 0.0
    return low + extra, high + extra


def _amount(text: str) -> tuple[float, float]:
    if text[0].isdigit():
        return float(text), float(text)
    return AMOUNTS[re.sub(r"[\s\-]+", " ", text.lower())]


def iso_date(match: re.Match[str], _now: datetime) -> Span:
    return spans.days(spans.date(int(match["y"]), int(match["m"]), int(match["d"])))


def iso_month(match: re.Match[str], _now: datetime) -> Span:
    return spans.month_of(int(match["y"]), int(match["m"]))


def numeric_date(match: re.Match[str], now: datetime) -> tuple[Span, ...]:
    """5/12/2023 is 12 May to some and 5 December to others: both, if both are possible and past."""
    first, second = int(match["a"]), int(match["b"])
    year = _full_year(int(match["y"]), now) if match["y"] else None
    day_first = (second, first)
    readings = [day_first] if match["sep"] == "." else list({(first, second), day_first})
    found = [_numeric_day(month, day, year, now) for month, day in sorted(readings)]
    likely = [span for span in found if span is not None]
    return tuple(span for span in likely if span.start <= now) or tuple(likely)


def _numeric_day(month: int, day: int, year: int | None, now: datetime) -> Span | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return _in_year(lambda y: spans.days(spans.date(y, month, day)), year, now)


def _in_year(yearly: spans.Yearly, year: int | None, now: datetime) -> Span | None:
    return spans.latest(yearly, now) if year is None else yearly(year)


def day_and_month(match: re.Match[str], now: datetime) -> Span | None:
    day, month = _day_number(match["day"]), MONTHS[match["month"].lower()]
    year = _year_number(match["year"], now) if match["year"] else None
    if year is None and _is_verb(match):
        return None
    last = _day_number(match["day2"]) if "day2" in match.re.groupindex else day
    if last < day:
        return None
    return _in_year(lambda y: spans.days(spans.date(y, month, day), last - day + 1), year, now)


def _is_verb(match: re.Match[str]) -> bool:
    """ "may 5 people come", "march 2 miles": a plain number by a lower-case word."""
    if match["month"].lower() not in ("may", "march", "mar"):
        return False
    if not match["day"].isdigit() and not (match["month"].islower() and match["day"].isalpha()):
        return False
    if _said_before(match, _DATE_BEFORE):
        return False
    return match["month"].islower() or not match.string[: match.start()].strip()


def _yearly(match: re.Match[str]) -> spans.Yearly:
    groups = match.groupdict()
    if groups.get("month"):
        month = MONTHS[match["month"].lower()]
        return lambda year: spans.month_of(year, month)
    if groups.get("season"):
        return spans.season_of(match["season"].lower())
    return spans.holiday_of(_word(match, "holiday"))


def recurring(match: re.Match[str], now: datetime) -> Span | None:
    """A month, season or holiday: of the year or direction named, or the latest begun."""
    groups, yearly = match.groupdict(), _yearly(match)
    if groups.get("year"):
        return yearly(_year_number(match["year"], now))
    if groups.get("direction") is None:
        soon = spans.coming(yearly, now) if groups.get("holiday") else None
        # "What do I plan for Christmas", asked in December, is about the one ahead.
        if soon and soon.start - now <= 30 * DAY:
            return soon
        return spans.latest(yearly, now)
    direction = DIRECTIONS[_word(match, "direction")]
    if direction == 0:
        return _this(match, yearly, now)
    return spans.latest_over(yearly, now) if direction < 0 else spans.coming(yearly, now)


def _this(match: re.Match[str], yearly: spans.Yearly, now: datetime) -> Span | None:
    after = match.string[match.end() :].lstrip()
    if match.groupdict().get("month") == "may" and after and after[0] not in "?.!,;:)":
        return None  # "This may help."
    if match.groupdict().get("holiday"):
        return spans.nearest(yearly, now)
    if match.groupdict().get("season") == "winter" and now.month <= 8:
        return yearly(now.year - 1)
    return yearly(now.year)


def months_between(match: re.Match[str], now: datetime) -> Span | None:
    first, last = MONTHS[match["month"].lower()], MONTHS[match["month2"].lower()]
    count = (last - first) % 12 + 1
    year = _year_number(match["year"], now) if match["year"] else None
    return _in_year(lambda y: spans.month_of(y, first, count), year, now)


def weekday(match: re.Match[str], now: datetime) -> Span | None:
    groups, weekday = match.groupdict(), WEEKDAYS[match["weekday"].lower()]
    direction = DIRECTIONS[_word(match, "direction")] if groups.get("direction") else -1
    if direction < 0:
        day = spans.weekday_before(now, weekday)
    elif direction > 0:
        day = spans.weekday_after(now, weekday)
    else:
        day = spans.unit_around(now, "week").start + weekday * DAY
    return _part_of_day(match, day)


def _part_of_day(match: re.Match[str], day: datetime) -> Span:
    part = match.groupdict().get("part")
    return spans.hours_of(day, *DAY_PARTS[part.lower()]) if part else spans.days(day)


def single_weekday(match: re.Match[str], now: datetime) -> Span | None:
    """ "Saturday" without a preposition; not "every Saturday", "Taco Tuesday", "my dog Friday"."""
    return None if _said_before(match, _HABIT) else weekday(match, now)


def weekday_of_week(match: re.Match[str], now: datetime) -> Span:
    week = spans.unit_around(now, "week", DIRECTIONS[_word(match, "direction")])
    return _part_of_day(match, week.start + WEEKDAYS[match["weekday"].lower()] * DAY)


def weekday_ago(match: re.Match[str], now: datetime) -> Span:
    nth = round(_amount(match["amount"])[0])
    return spans.days(spans.weekday_before(now, WEEKDAYS[match["weekday"].lower()], nth))


def recurring_ago(match: re.Match[str], now: datetime) -> Span | None:
    """ "Two summers ago": with the last one over counted as one."""
    last = spans.latest_over(_yearly(match), now)
    back = round(_amount(match["amount"])[0]) - 1
    return _yearly(match)(last.start.year - back) if last else None


def before_last(match: re.Match[str], now: datetime) -> Span | None:
    groups = match.groupdict()
    if groups.get("weekday"):
        return spans.days(spans.weekday_before(now, WEEKDAYS[match["weekday"].lower()], 2))
    if groups.get("unit"):
        return spans.unit_around(now, match["unit"].lower(), -2)
    last = spans.latest_over(_yearly(match), now)
    return spans.latest_over(_yearly(match), last.start) if last else None


def calendar_unit(match: re.Match[str], now: datetime) -> Span | None:
    """ "Last week", "this month", "next year": Monday to Sunday, the first to the last."""
    if _said_before(match, _POSSESSIVE):
        return None  # "My last year of college."
    return spans.unit_around(now, match["unit"].lower(), DIRECTIONS[_word(match, "direction")])


def rolling(match: re.Match[str], now: datetime) -> Span | None:
    """ "The past two weeks", "the last month": back from, or on from, this moment."""
    groups = match.groupdict()
    high = _amount(match["amount"])[1] if groups.get("amount") else 1.0
    direction = DIRECTIONS[_word(match, "direction")]
    if direction < 0 and not groups.get("the") and _said_before(match, _VERB_LAST):
        return None  # "Would it last two weeks?"
    far = spans.shift(now, direction * high, match["unit"].lower())
    if match["unit"].lower() not in ("minute", "hour"):
        far = spans.midnight(far)
    return Span(now, far + DAY) if direction > 0 else Span(far, now)


def ago(match: re.Match[str], now: datetime) -> Span:
    low, high = amount_of(match)
    groups = match.groupdict()
    if groups.get("half2"):
        low, high = low + 0.5, high + 0.5
    if groups.get("or_so") and match["or_so"].lower() != "so":
        high = max(high, _amount(match["or_so"])[1])
    about = bool(match["about"] or groups.get("or_so"))
    unit = match["unit"].lower()
    if "ago" not in groups:
        return spans.count_off(now, low, high, unit, about=about)
    return spans.count_off(now, -high, -low, unit, about=about)


def named_day(match: re.Match[str], now: datetime) -> Span:
    offset = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}[match["name"].lower()]
    day = now + offset * DAY
    if match["name"].lower() == "tonight":
        return spans.hours_of(day, *DAY_PARTS["night"])
    return _part_of_day(match, day)


def _part_of_today(match: re.Match[str], now: datetime) -> Span:
    offset = DIRECTIONS[_word(match, "direction")]
    return spans.hours_of(now + offset * DAY, *DAY_PARTS[match["part"].lower()])


def earlier(match: re.Match[str], now: datetime) -> Span:
    unit = "day" if match["unit"].lower() == "today" else match["unit"].lower()
    whole = spans.unit_around(now, unit)
    if match["when"].lower() == "later":
        return Span(now, max(whole.end, now + DAY))
    return Span(whole.start, max(now, whole.start + DAY))


def quarter(match: re.Match[str], now: datetime) -> Span | None:
    first = 3 * int(match["quarter"]) - 2
    year = _year_number(match["year"], now) if match["year"] else None
    return _in_year(lambda y: spans.month_of(y, first, 3), year, now)


def half_year(match: re.Match[str], now: datetime) -> Span:
    return spans.month_of(_year_number(match["year"], now), 6 * int(match["half"]) - 5, 6)


def year(match: re.Match[str], now: datetime) -> Span:
    return spans.year_of(_year_number(match["year"], now))


def years_between(match: re.Match[str], _now: datetime) -> Span | None:
    first, last = int(match["first"]), int(match["last"])
    return spans.year_of(first, last - first + 1) if first < last else None


def decade(match: re.Match[str], now: datetime) -> Span:
    word = match["decade"].lower()
    first = DECADES[word] if word in DECADES else _full_year(int(word), now)
    return spans.year_of(first // 10 * 10, 10)


def the_other(match: re.Match[str], now: datetime) -> Span:
    """ "The other day" is some days back, "the other week" some weeks; not long ago."""
    unit = match["unit"].lower()
    far = {"day": 10, "night": 10, "evening": 10, "morning": 10, "month": 120}.get(unit, 35)
    return Span(spans.midnight(now - far * DAY), spans.midnight(now))


def day_of_month(match: re.Match[str], now: datetime) -> Span | None:
    day = _day_number(match["day"])
    for back in range(3):
        month = spans.unit_around(now, "month", -back)
        found = month.start + (day - 1) * DAY
        if day >= 1 and found <= now and found < month.end:
            return spans.days(found)
    return None


def this_time(match: re.Match[str], now: datetime) -> Span:
    unit = match["unit"].lower()
    back, unit = (-12, "month") if unit == "year" else (-1, unit)
    return spans.count_off(now, back, back, unit)


def the_weekend(_match: re.Match[str], now: datetime) -> Span:
    this = spans.unit_around(now, "weekend")
    return this if this.start <= now else spans.unit_around(now, "weekend", -1)


def the_unit(match: re.Match[str], now: datetime) -> Span:
    return spans.unit_around(now, match["unit"].lower())


def this_or_last_night(match: re.Match[str], now: datetime) -> Span:
    if match["night"]:
        return spans.hours_of(now - DAY, *DAY_PARTS["night"])
    return _part_of_today(match, now)

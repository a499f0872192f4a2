"""What a statement says about when it holds, taken out of its words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from language.english.dates.spans import shift
from language.english.dates.time_intent import Period, read_time
from language.english.dates.words import AMOUNTS, one_of
from language.english.facts.vocabulary import WEEKDAY


@dataclass(frozen=True, slots=True)
class When:
    """
    Attributes:
        since: "since 2019", "for three years": it has held since then.
        at: "in March", "yesterday": the beginning of when it happened or will.
        until: "until 2020".
    """

    since: datetime | None = None
    at: datetime | None = None
    until: datetime | None = None


_DURATION = re.compile(
    rf"(?i)[,\s]*\b(?:for|over|since)(?: the (?:last|past))?(?: about| around| almost| nearly| over"
    rf"| more than| roughly| at least| just under)? (?P<amount>\d{{1,3}}"
    rf"|{one_of(AMOUNTS)}) (?P<unit>year|month|week|decade)s?\b(?: now)?(?! (?:old|ago|a))"
)
_SINCE_THEN = re.compile(
    r"(?i)[,\s]*\b(?:ever since(?! [\dA-Z])|since (?:I was|childhood|birth|college|university"
    r"|high school|then|forever)(?: (?:a |an )?\w+)?|since (?:a|the|my|our|we|I|he|she"
    r"|they) [\w' ]{2,30}|all my life|my (?:whole|entire) life|(?:for )?(?:a long time|ages|a while"
    r"|(?<!\d )years(?! old| of)|decades|as long as I can remember))\b"
)
_LEADING = re.compile(
    r"(?i)[,\s(]*\b(?:(?:starting|beginning|back|early|late|sometime|since|from|as of|just|only|on"
    r"|in|at|by|around|until|till|of|the|this|scheduled for|for|set for)\s+)*\Z"
)
_MIGHT_TELL = re.compile(
    r"(?i)\d|day\b|night|week|month|year|summer|winter|spring|autumn|fall\b|morning|today"
    r"|tomorrow|ago\b|since"
    r"|january|february|march|april|\bmay\b|june|july|august|september|october|november"
    r"|december|decade"
    r"|christmas|easter|halloween|thanksgiving|life|ages|weekend|quarter|semester"
    r"|long time|a while|jan\b|feb\b|sept?\b|oct\b|nov\b|dec\b"
)
# A date so far from when it was said was misread.
_FARTHEST = timedelta(days=365 * 100)


def might_tell_when(text: str) -> bool:
    """A cheap look whether words may say when."""
    return _MIGHT_TELL.search(text) is not None


def read_ahead(text: str, said_at: datetime) -> tuple[str, When]:
    """As `read_when`, of what is still to come: "in November", "on Saturday" is the next one."""
    left, when = read_when(text, said_at)
    if when.at is None or when.at >= said_at or _IS_FIXED.search(text):
        return left, when
    if said_at - when.at < _WEEK + timedelta(days=1) and _A_WEEKDAY.search(text):
        # Said on a Monday, "on Monday" is in a week.
        weeks = 2 if said_at - when.at >= _WEEK else 1
        return left, replace(when, at=when.at + weeks * _WEEK)
    try:
        return left, replace(when, at=when.at.replace(year=when.at.year + 1))
    except ValueError:  # 29 February.
        return left, when


_WEEK = timedelta(days=7)
_A_WEEKDAY = re.compile(WEEKDAY, re.IGNORECASE)
# It names its year, or the past.
_IS_FIXED = re.compile(
    r"(?i)\b(?:1[89]|20)\d\d\b|\b(?:ago|last|past|yesterday|today|tonight)\b"
    r"|\bthis (?:morning|evening|week|month|year)\b"
)


def read_when(text: str, said_at: datetime) -> tuple[str, When]:
    """What is left of `text`, and what it says of when, at `said_at`."""
    if not _MIGHT_TELL.search(text):
        return text, When()
    since: datetime | None = None
    duration = _DURATION.search(text)
    if duration is not None:
        since = _back(said_at, duration)
        text = text[: duration.start()] + text[duration.end() :]
    text, when = _read_periods(text, said_at)
    text = _SINCE_THEN.sub("", text)
    return " ".join(text.split()), When(when.since or since, when.at, when.until)


def _back(said_at: datetime, duration: re.Match[str]) -> datetime | None:
    amount = duration["amount"].lower()
    low, high = (float(amount),) * 2 if amount.isdigit() else AMOUNTS[amount]
    try:
        day = shift(said_at.replace(tzinfo=None), -(low + high) / 2, duration["unit"].lower())
    except (ValueError, OverflowError):
        return None
    return day.replace(tzinfo=said_at.tzinfo)


# "Monday.com" is a name.
_DOMAIN = re.compile(r"\.[a-z]{2,}\b")


def _read_periods(text: str, said_at: datetime) -> tuple[str, When]:
    when = When()
    cuts: list[tuple[int, int]] = []
    for period in read_time(text, said_at).periods:
        before = text[: period.start_char]
        if _DOMAIN.match(text, period.end_char):
            continue
        if cuts and period.start_char < cuts[-1][1]:
            continue
        leading = _LEADING.search(before)
        first = leading.start() if leading else period.start_char
        lead = f"{before[first:]}{period.text}".lower().strip(" ,(")
        cuts.append((first, period.end_char))
        when = _with(when, lead, period, said_at)
    for start, end in reversed(cuts):
        text = text[:start] + " " + text[end:]
    return text, when


def _with(when: When, lead: str, period: Period, said_at: datetime) -> When:
    """`when` with one more period; what it has already stays."""
    begins, ends = _near(_beginning(period), said_at), _near(_end_of(period), said_at)
    if re.match(r"(?:ever )?since|starting|beginning|as of", lead):
        return replace(when, since=when.since or begins)
    if re.match(r"until|till|up to|through", lead):
        return replace(when, until=when.until or ends)
    if re.match(r"from", lead):
        lasting = period.end - period.start > timedelta(days=1) and re.search(
            r" (?:to|until|till|through) ", lead
        )
        return replace(
            when, since=when.since or begins, until=when.until or (ends if lasting else None)
        )
    if re.match(r"before|after|by", lead):
        return when
    return replace(when, at=when.at or begins)


def _beginning(period: Period) -> datetime:
    """Of "two years ago" it is the middle: the span allows for people's rounding."""
    if period.text.lower().endswith((" ago", " back")):
        return period.start + (period.end - period.start) / 2
    return period.start


def _end_of(period: Period) -> datetime:
    """The last day of it."""
    day = timedelta(days=1)
    return period.end - day if period.end - period.start >= day else period.end


def _near(moment: datetime, said_at: datetime) -> datetime | None:
    return moment if abs(moment - said_at) < _FARTHEST else None

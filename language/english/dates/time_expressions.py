"""Expressions that name a time by themselves: "5 May 2023", "last Tuesday", "two weeks ago".

`RULES` is the grammar: each row says what kind of expression it is, how it reads and what it means.
Kinds other than CLEAR are words with other meanings too ("May", "fall", "2000"); they count only
after a preposition that allows them, see `phrases`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from language.english.dates import meanings as means
from language.english.dates.meanings import Builder
from language.english.dates.spans import (
    AMOUNTS,
    COUNTED,
    DAY_HOLIDAYS,
    DAY_PARTS,
    DECADES,
    DIRECTIONS,
    FULL_WEEKDAYS,
    HOLIDAYS,
    MONTHS,
    NAME_MONTHS,
    ORDINALS,
    PLAIN_MONTHS,
    SEASONS,
    SPOKEN_WEEKDAYS,
    UNITS,
    WEEKDAYS,
    one_of,
    phrase,
)


class Kind(Enum):
    """What an expression needs before it to be about time."""

    CLEAR = auto()  # Nothing.
    MONTH = auto()  # "May", "Mar".
    NAME_MONTH = auto()  # "April", "June", "August": people too.
    SEASON = auto()  # "summer", "fall".
    THE_SEASON = auto()  # "the summer".
    HOLIDAY = auto()  # "Christmas": a topic more often than a time.
    WEEKDAY = auto()
    WEEKEND = auto()  # "the weekend".
    YEAR = auto()  # "2000".
    DAY_OF_MONTH = auto()  # "the 21st".
    UNIT = auto()  # "the year", as in "the end of the year".


@dataclass(frozen=True, slots=True)
class Rule:
    kind: Kind
    pattern: re.Pattern[str]
    build: Builder


AMOUNT = rf"(?:[0-9]{{1,5}}(?:\.[0-9]{{1,2}})?|{one_of(AMOUNTS)})"
COUNT = (
    r"(?:(?P<about>about|around|roughly|approximately|nearly|almost|over|more than|just over|"
    rf"a little over|just under|at least|maybe) )?(?P<amount>{AMOUNT})"
    rf"(?:(?: or | to |\s*[-–]\s*)(?P<most>{AMOUNT}))?(?P<half> and a half)?"
)
_UNIT = rf"(?P<unit>{one_of(UNITS)})s?"
_ORDINAL = one_of(ORDINALS)
_DAY = rf"(?P<day>[0-9]{{1,2}}(?:st|[nr]d|th)?|{_ORDINAL})"
_DAY_2 = _DAY.replace("<day>", "<day2>")
_DIRECTION = rf"(?P<direction>{one_of(DIRECTIONS)})"
# "May I", "may be": the verb.
_NOT_A_VERB = r"(?!(?<=may) (?:i|we|you|he|she|they|it|be|have|not|well|also|or may)\b)"
_MONTH = rf"(?P<month>{one_of(MONTHS)}){_NOT_A_VERB}\.?"
_NAMED_YEAR = r"(?:last|this|next|the same|the previous) year"
_YEAR = rf"(?P<year>(?:1[89]|20)[0-9]{{2}}|'[0-9]{{2}}|{_NAMED_YEAR})"
_OF_YEAR = rf"(?:(?:,? |,)(?:of |in )?{_YEAR})"
_WEEKDAY = rf"(?P<weekday>{one_of(SPOKEN_WEEKDAYS)})"
_FULL_WEEKDAY = rf"(?P<weekday>{one_of(FULL_WEEKDAYS)})"
_AND_WEEKDAY = rf"(?:(?:{one_of(WEEKDAYS)})\.?,? (?:the )?)?"
_DAY_PART = rf"(?P<part>{one_of(DAY_PARTS)})"
_HOLIDAY = rf"(?P<holiday>{one_of(HOLIDAYS)})"
_NOT_A_NOUN = (
    r"(?! (?:rolls?|onions?|clean|cleaning|water|mattress|asleep|apart|off|over|into|under|down|"
    r"behind|back|ill|out|out of|from|through|to mind|break down|guy|semester project)\b)"
)
_SEASON = rf"(?P<season>{one_of(SEASONS)}){_NOT_A_NOUN}"
_UP_TO = r"(?: to | through | thru | until | till | and |\s*[-–—]\s*)"
_CLAUSE_END = r"(?=\s*(?:[?.!,;:)]|$))"
_FOUR_DIGITS = r"(?:1[89]|20)[0-9]{2}"

_RECURRING = rf"(?:{_MONTH}|{_SEASON}|{_HOLIDAY})"
_LONG_UNIT = r"(?P<unit>week|weekend|fortnight|month|quarter|semester|year|decade)"
_SHORT_MONTHS = [
    name for name in MONTHS if name not in (*PLAIN_MONTHS, *NAME_MONTHS)
]  # fmt: skip

_ROWS: tuple[tuple[Kind, str, Builder], ...] = (
    # Dates in digits.
    (Kind.CLEAR, rf"(?P<y>{_FOUR_DIGITS})(?P<sep>[-/])(?P<m>[0-9]{{1,2}})(?P=sep)"
     r"(?P<d>[0-9]{1,2})(?:t[0-9:.]+z?)?", means.iso_date),
    (Kind.CLEAR, rf"(?P<y>{_FOUR_DIGITS})-(?P<m>0[1-9]|1[0-2])(?![\-0-9])", means.iso_month),
    (Kind.CLEAR, r"(?P<a>[0-9]{1,2})(?P<sep>[/\-.])(?P<b>[0-9]{1,2})(?P=sep)"
     rf"(?P<y>{_FOUR_DIGITS})", means.numeric_date),
    (Kind.CLEAR, r"(?P<a>[0-9]{1,2})(?P<sep>/)(?P<b>[0-9]{1,2})/(?P<y>[0-9]{2})",
     means.numeric_date),
    (Kind.WEEKDAY, r"(?P<a>[0-9]{1,2})(?P<sep>/)(?P<b>[0-9]{1,2})(?P<y>)(?![/0-9])",
     means.numeric_date),
    # Days of months.
    (Kind.CLEAR, rf"{_AND_WEEKDAY}(?:the )?{_DAY} (?:of )?{_MONTH}{_OF_YEAR}?",
     means.day_and_month),
    (Kind.CLEAR, rf"{_AND_WEEKDAY}{_MONTH} (?:the )?{_DAY}(?![%:/]|\.[0-9]){_OF_YEAR}?",
     means.day_and_month),
    (Kind.CLEAR, rf"(?:the )?{_DAY}{_UP_TO}(?:the )?{_DAY_2} (?:of )?{_MONTH}{_OF_YEAR}?",
     means.day_and_month),
    (Kind.CLEAR, rf"{_MONTH} (?:the )?{_DAY}{_UP_TO}(?:the )?{_DAY_2}(?![%:/]){_OF_YEAR}?",
     means.day_and_month),
    (Kind.DAY_OF_MONTH, rf"the (?P<day>[0-9]{{1,2}}(?:st|[nr]d|th)){_CLAUSE_END}",
     means.day_of_month),
    # Months, seasons, holidays.
    (Kind.CLEAR, rf"(?:the month of )?{_MONTH}{_OF_YEAR}", means.recurring),
    (Kind.CLEAR, rf"the month of {_MONTH}", means.recurring),
    (Kind.CLEAR, rf"{_MONTH}\s*[-–]\s*{_MONTH.replace('<month>', '<month2>')}{_OF_YEAR}?",
     means.months_between),
    (Kind.CLEAR, rf"(?P<month>{one_of(PLAIN_MONTHS)})", means.recurring),
    (Kind.MONTH, rf"(?P<month>{one_of(_SHORT_MONTHS)}){_NOT_A_VERB}\.?", means.recurring),
    (Kind.NAME_MONTH, rf"(?P<month>{one_of(NAME_MONTHS)})\.?(?!'s)", means.recurring),
    (Kind.CLEAR, rf"(?:the )?{_SEASON}{_OF_YEAR}", means.recurring),
    (Kind.SEASON, _SEASON, means.recurring),
    (Kind.THE_SEASON, rf"the {_SEASON}", means.recurring),
    (Kind.CLEAR, rf"(?:the )?{_HOLIDAY}{_OF_YEAR}", means.recurring),
    (Kind.CLEAR, rf"(?P<holiday>{one_of(DAY_HOLIDAYS)})", means.recurring),
    (Kind.HOLIDAY, rf"(?:the )?{_HOLIDAY}", means.recurring),
    (Kind.CLEAR, rf"(?:the )?{_DIRECTION} {_RECURRING}(?!'s (?:party|wedding))", means.recurring),
    (Kind.CLEAR, rf"(?P<amount>{AMOUNT}) {_RECURRING}(?:s|es)? ago", means.recurring_ago),
    # Weekdays and parts of days.
    (Kind.CLEAR, rf"(?:the )?{_DIRECTION} {_WEEKDAY}(?: {_DAY_PART})?", means.weekday),
    (Kind.CLEAR, rf"{_WEEKDAY}(?: {_DAY_PART})? (?:of |in )?{_DIRECTION} week",
     means.weekday_of_week),
    (Kind.CLEAR, rf"{_DIRECTION} week (?:on )?{_WEEKDAY}(?: {_DAY_PART})?", means.weekday_of_week),
    (Kind.CLEAR, rf"(?P<amount>{AMOUNT}) {_FULL_WEEKDAY}s? ago", means.weekday_ago),
    (Kind.CLEAR, rf"{_FULL_WEEKDAY} {_DAY_PART}(?! live\b| lights\b)", means.single_weekday),
    (Kind.CLEAR, rf"{_FULL_WEEKDAY}{_CLAUSE_END}", means.single_weekday),
    (Kind.WEEKDAY, rf"{_WEEKDAY}(?: {_DAY_PART})?", means.weekday),
    (Kind.CLEAR, rf"(?P<name>yesterday|today|tonight|tomorrow)(?: {_DAY_PART})?"
     r"(?!'s (?:world|society|age|market|economy)\b)", means.named_day),
    (Kind.CLEAR, rf"(?P<direction>this) {_DAY_PART}|(?P<last>last) (?P<night>night)",
     means.this_or_last_night),
    # Weeks, months, years counted from now.
    (Kind.CLEAR, r"(?P<the>the )(?P<direction>last) (?P<unit>day|week|month|quarter|year|decade)"
     r"(?! (?:of|in)\b)", means.rolling),
    (Kind.CLEAR, r"(?P<the>(?:the |this ))?(?P<direction>past) (?P<unit>day|week|month|quarter|"
     r"year|decade)", means.rolling),
    (Kind.CLEAR, rf"(?:the )?(?P<direction>last|previous|this|current|next|coming|this coming) "
     rf"{_LONG_UNIT}", means.calendar_unit),
    (Kind.CLEAR, r"(?:the |this )?(?P<direction>past) (?P<unit>weekend)", means.calendar_unit),
    (Kind.CLEAR, rf"(?P<the>the |these |this )?(?P<direction>last|past|previous|next|coming) "
     rf"(?P<amount>(?!an? )(?:few|couple(?: of)?|several|{AMOUNT})) {_UNIT}(?! (?:of|in)\b)",
     means.rolling),
    (Kind.CLEAR, rf"(?:the )?(?:(?P<unit>{one_of(UNITS)})|{_FULL_WEEKDAY}|{_RECURRING}) "
     r"before last(?! (?:week|month|year|night))", means.before_last),
    (Kind.CLEAR, rf"{COUNT} {_UNIT}(?P<half2> and a half)?(?: or (?P<or_so>so|two|three))? "
     r"(?P<ago>ago|back|previously)(?: today)?", means.ago),
    (Kind.CLEAR, rf"(?:in )?{COUNT} {_UNIT}(?:'s?)?(?: time| from now| from today| hence)",
     means.ago),
    (Kind.CLEAR, r"(?P<when>earlier|later|sometime|so far) (?P<unit>today)", means.earlier),
    (Kind.CLEAR, rf"(?P<when>earlier|later|so far) (?:this|in the) {_LONG_UNIT}", means.earlier),
    (Kind.CLEAR, r"the other (?P<unit>day|night|evening|morning|week|weekend|month)",
     means.the_other),
    (Kind.CLEAR, r"this time last (?P<unit>week|month|year)", means.this_time),
    (Kind.WEEKEND, r"the weekend(?! of\b)", means.the_weekend),
    (Kind.UNIT, r"(?:the|this) (?P<unit>week|month|quarter|semester|year|decade)", means.the_unit),
    # Quarters, years, decades.
    (Kind.CLEAR, rf"q(?P<quarter>[1-4]){_OF_YEAR}?", means.quarter),
    (Kind.CLEAR, rf"h(?P<half>[12]){_OF_YEAR}", means.half_year),
    (Kind.CLEAR, rf"(?:the )?year (?:of )?(?P<year>{_FOUR_DIGITS})", means.year),
    (Kind.YEAR, rf"(?P<year>{_FOUR_DIGITS}|'[0-9]{{2}})(?! (?:{one_of(COUNTED)})\b|[%,.][0-9]|%)",
     means.year),
    (Kind.YEAR, rf"(?P<first>{_FOUR_DIGITS})\s*[-–]\s*(?P<last>{_FOUR_DIGITS})",
     means.years_between),
    (Kind.CLEAR, r"the '?(?P<decade>(?:1[89]|20)?[0-9]0)'?s", means.decade),
    (Kind.CLEAR, r"(?P<decade>(?:1[89]|20)[0-9]0)'?s", means.decade),
    (Kind.CLEAR, rf"the (?P<decade>{one_of(DECADES)})", means.decade),
    (Kind.UNIT, r"'?(?P<decade>[0-9]0)'?s", means.decade),
)  # fmt: skip


RULES = tuple(Rule(kind, phrase(pattern), build) for kind, pattern, build in _ROWS)

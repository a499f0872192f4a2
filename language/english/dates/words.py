"""The words of time, as data: months, weekdays, seasons, holidays, numbers, amounts, units."""

from __future__ import annotations

import re
from collections.abc import Iterable

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

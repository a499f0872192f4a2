"""Rules: which verb, followed by what, says what of its subject; and when a statement holds, as its
words say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any

from language.english.dates import Period, read_time
from language.english.dates.spans import AMOUNTS, one_of, shift
from language.english.facts.people import Person
from language.english.facts.verbs import Tense, Verb
from language.english.facts.vocabulary import WEEKDAY
from language.facts import FactType, Words

PAST_TENSES = frozenset({Tense.PAST, Tense.USED_TO})


@dataclass(frozen=True, slots=True)
class Claim:
    """A verb said of somebody, at these words.

    Attributes:
        lead: What stood before the subject: "Last year".
        said_at: When it was said, from which "yesterday" counts.
    """

    person: Person
    verb: Verb
    words: Words
    said_at: datetime
    lead: str = ""
    corrects: bool = False


def without_reasons(tail: str) -> str | None:
    if not tail:
        return ""
    said = re.split(
        r"\s*(?:[;(]|:(?!\d)| [-–—] |--|, (?:and|but|so|which|because)\b|\b(?:because"
        r"|so|but|which|and it|and I|when|if|while|since|as)\b)",
        tail,
    )[0]
    return (
        None
        if re.match(r"(?:it|that|this|them|there|what|to be|to see)\b", said)
        else said.strip(" ,")
    )


class Mode(Enum):
    """What the past tense of a verb makes of a statement."""

    STATE = auto()  # "I worked there": it is over.
    BEGAN = auto()  # "I moved there": it holds from then on.
    ENDED = auto()  # "I quit": what held does so no longer.
    EVENT = auto()  # "I visited it": it happened.


@dataclass(frozen=True, slots=True)
class Rule:
    """
    Attributes:
        tail: What follows the verb; its group `o` is the object, `a` an aspect.
        says: What the statement is put as, in the base form: "live in {o}".
        kind: What the object is, if it is somebody or something with a name.
        aspect: A facet, where it is always the same one.
        many: The object may be a list, each member of which is a statement.
        accepts: Whether an object makes sense.
        animals: It may be said of them.
        flips: It is said by a negation: "I can't stand it".
        dated: It is worth keeping only where it is told when.
        past: What was so is worth keeping too.
        to_comma: The object ends at a comma.
        kin: It is said of family and friends who live elsewhere: of the speaker, "in Rome" may be
            a holiday.
        since: It is worth keeping only with since when it is so.
        or_now: With "now", or where it is so no longer, it is worth keeping without since when too.
        confidence: How often such a statement is right, 0 to 1; see `language.facts.SURE`.
    """

    tail: re.Pattern[str]
    predicate: str
    says: str
    mode: Mode = Mode.STATE
    type: FactType = "fact"
    kind: str = ""
    stance: str = ""
    aspect: str = ""
    many: bool = False
    accepts: Callable[[str], bool] | None = None
    flips: bool = False
    dated: bool = False
    past: bool = True
    to_comma: bool = True
    animals: bool = False
    kin: bool = False
    since: bool = False
    or_now: bool = False
    confidence: float = 0.8
    object: str = "{o}"


Table = dict[str, list[Rule]]


Options = dict[str, Any]  # What several rows of a table have in common.


def row(said: str, predicate: str, says: str, **options: Any) -> tuple[str, Rule]:
    """A rule for each of the verbs of "love adore: (?P<o>.+)", whose tail follows the colon.

    In whatever case, except that a capital asked for must be one.
    """
    verbs, _, tail = said.partition(": ")
    pattern = tail.replace("[A-Z]", "(?-i:[A-ZÀ-ÖØ-ÞĀ-Ž])")
    return verbs, Rule(re.compile(pattern, re.IGNORECASE), predicate, says, **options)


def rows_of(predicate: str, says: str, **shared: Any) -> Callable[..., tuple[str, Rule]]:
    """A maker of rows of one predicate: `says` and `shared` hold where a row gives no others."""

    def one(said: str, says: str = says, **options: Any) -> tuple[str, Rule]:
        return row(said, predicate, says, **{**shared, **options})

    return one


def table_of(rows: Iterable[tuple[str, Rule]]) -> Table:
    """By verb."""
    table: Table = {}
    for verbs, rule in rows:
        for verb in verbs.split():
            table.setdefault(verb, []).append(rule)
    return table


_STOPS = re.compile(
    r"(?is)\s*(?:,(?!\d{3}\b)|[;()!?]|:(?!\d)|\s-\s|--|—|–|·|\b(?:because|cause|lately|recently"
    r"|I have been|I am|when|while|which|where|that|who|whom|whose|so|but|if|since|although|though"
    r"|as|after|before|until|than|due|thanks|unless|despite|given|every time|whenever|then"
    r"|from now on)\b|\band (?:[\w-]+ ){1,2}(?:takes?|is|are|has|have|was|were)\b|\band (?:I|we|my"
    r"|it|he|she|they|the|have|has|also|am|is|are|now|then|wants?|needs?|hopes?|was|will)\b).*"
)
_STOPS_BUT_COMMAS = re.compile(_STOPS.pattern.replace(r",(?!\d{3}\b)|", ""), _STOPS.flags)
_VAGUE = re.compile(
    r"(?i)\A(?:it|this|that|these|those|them|him|her(?! [a-z]+(?: [a-z]|\Z))|you|your|yours|mine"
    r"|ours|hers|theirs|one|here|there|everything|something|anything|nothing|all|some|any|more"
    r"|most|much|many|lots?|both|each|such|another|other|others|same|the (?:same|idea|way|fact"
    r"|rest|latter|former|one|ones|area|process|concept|thought|look|sound|results?|feeling|issue"
    r"|problem|code|example|following|first|second|job|moment|suggestion)|what|how|who|to|not|so"
    r"|as|thing|things|stuff|people|us|me|myself)\b"
)
_YOURS = re.compile(r"(?i)\b(?:you|your|yours|this|these|those|that)\b|·")
_ARTICLE = re.compile(r"(?i)\A(?:an?|the|some|my|our)\s+(?=\S)")
OBJECT_WORDS = 9


def phrase_of(words: str, *, to_comma: bool = True) -> str | None:
    """The noun phrase at the beginning of `words`; None where it means nothing by itself."""
    stops = _STOPS if to_comma else _STOPS_BUT_COMMAS
    phrase = stops.sub("", " " + words).strip(" .,;:!'\"")
    if not phrase or _VAGUE.match(phrase) or _YOURS.search(phrase):
        return None
    return phrase if len(phrase.split()) <= OBJECT_WORDS and len(phrase) <= 90 else None


def bare(phrase: str) -> str:
    """Without an article: "a data scientist" as an object is "data scientist"."""
    return _ARTICLE.sub("", phrase)


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
    r"|\b(?:mon|tues?|weds?|thu(?:rs?)?|fri)\b"
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

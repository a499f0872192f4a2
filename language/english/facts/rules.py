"""Rules: which verb, followed by what, says what of its subject."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any

from language.english.facts.people import Person
from language.english.facts.verbs import Tense, Verb
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

"""What somebody does again and again, or never: "I run every morning", "I don't do night calls"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from language.english.facts.patterns_tastes import AVOIDED_VERBS, HABIT_VERBS, OFTEN
from language.english.facts.rules import Claim, without_reasons
from language.english.facts.validity import When
from language.english.facts.verbs import FORMS, Tense, Verb
from language.english.facts.vocabulary import NUMBER_WORD, WEEKDAY
from language.english.grammatical_person import sentence, third
from language.facts import Candidate

_BY_ITSELF = frozenset(
    "run swim cycle jog meditate journal dance paint draw garden knit hike climb row ski surf sail"
    " commute volunteer coach foster cook bake sing read write exercise code sew".split()
)
_VAGUE = re.compile(
    r"\b(?:you|this|that|these|those|it|them|APIs?|files?|scripts?|functions?|endpoints?|servers?"
    r"|database|queries|query|cron|builds?)\b|·"
)
_USUALLY = frozenset("usually often always regularly normally typically mostly".split())
# "Sadhbh has camogie Thursdays"; what else one has "regularly" is no habit.
_WEEKDAYS = re.compile(rf"(?i){WEEKDAY}(?<=s)")
_FEW_WORDS = 6
_NOTHING_LASTING = re.compile(
    r"(?i)\A(?:anything|much|too|so|well|very|any\b|enough|my (?:best|part)|badly|a thing)"
    r"|\b(?:yet|today|tonight|now|right now|this \w+|tomorrow|unless)\b"
)
_EITHER = re.compile(r"(?i),? (?:either|neither|just|ever|at all|though|tho)\b.*")


# "I've never been to Japan", "never owned a car", "never broken a bone".
_BEEN = re.compile(
    r"be (?:to (?:an? )?[A-Z]\w+|abroad|on a (?:plane|boat|cruise|horse))|own an? |learn to "
    r"|break a |live (?:abroad|alone|in )|have (?:a (?:pet|dog|cat|car|cavity|tattoo|passport)"
    r"|any siblings)\b"
)


def habits_of(claim: Claim, tail: str, when: When) -> Iterator[Candidate]:
    """What is done again and again: "I run every morning"."""
    verb = claim.verb
    if (avoided := _avoided(claim, tail, when)) is not None:
        yield avoided
        return
    if (routine := _routine(claim, tail, when)) is not None:
        yield routine
        return
    moved = verb.lemma == "go" and tail.startswith(("up to ", "down to "))
    if moved or verb.lemma not in HABIT_VERBS or not _is_habit(verb, tail, when):
        return
    said = without_reasons(tail)
    if (
        said is None
        or len(said.split()) > 10
        or said.startswith("nothing")
        or _says_nothing(verb.lemma, said)
    ):
        return
    words = f"{verb.lemma} {said}".strip()
    over = verb.tense is Tense.USED_TO
    tense = Tense.PRESENT if verb.tense is Tense.PERFECT else verb.tense
    yield Candidate(
        type="fact",
        subject=claim.person.thing,
        predicate="does",
        object=third(words),
        text=sentence(
            claim.person.label, third(words), tense=tense, negated=verb.negated, ended=verb.ended
        ),
        words=(claim.words,),
        negated=verb.negated,
        corrects=claim.corrects,
        valid_from=when.since,
        valid_to=claim.said_at if over else when.until,
        confidence=0.75,
    )


_AT_TIME = re.compile(
    rf"(?i)(?:(?P<up>up)|to bed|to sleep) (?:(?:at|by|before|around"
    rf"|from) )+(?P<at>(?:half past )?(?:\d[\d:.]*"
    rf"|{NUMBER_WORD}|dawn|sunrise|noon|midnight)(?: ?(?:am|pm|o'clock|in the morning))?)"
    r"(?=\Z|,| (?:every|most|on|these|now|all|each|during)\b)"
)


def _routine(claim: Claim, tail: str, when: When) -> Candidate | None:
    """ "I get up at five", of which there is one at a time, as there is of bedtime."""
    verb = claim.verb
    found = _AT_TIME.match(tail) if verb.lemma in ("get", "wake", "go") else None
    if found is None or when.at or verb.negated or verb.tense is not Tense.PRESENT:
        return None
    if re.search(r"(?i)\b(?:on|tomorrow|today)\b", tail):
        return None  # "On Mondays I get up at six" says nothing of the other days.
    aspect, says = ("getting up", "get up at") if found["up"] else ("bedtime", "go to bed at")
    says = f"{says} {found['at']}"
    return Candidate(
        type="fact",
        subject=claim.person.thing,
        predicate="does",
        object=says,
        text=sentence(claim.person.label, says, tense=verb.tense, negated=False, ended=False),
        words=(claim.words,),
        aspect=aspect,
        corrects=claim.corrects,
        confidence=0.75,
    )


def _avoided(claim: Claim, tail: str, when: When) -> Candidate | None:
    """ "I don't do night calls", "we never eat pork": it denies nothing that was known."""
    verb, said = claim.verb, without_reasons(tail)
    if not verb.negated or not said:
        return None
    never = verb.tense is Tense.PERFECT and "never" in verb.adverbs
    been = never and (_BEEN.match(f"{verb.lemma} {said}") is not None)
    if verb.lemma not in AVOIDED_VERBS and not been:
        return None
    if (
        not (verb.tense is Tense.PRESENT or never)
        or _VAGUE.search(tail)
        or len(said.split()) > _FEW_WORDS
    ):
        return None
    if _NOTHING_LASTING.search(said):
        return None
    words = f"{verb.lemma} {_EITHER.sub('', said)}"
    text = sentence(
        claim.person.label, third(words), tense=verb.tense, negated=True, ended=verb.ended
    )
    if never:
        words = f"{FORMS[verb.lemma][2]} {_EITHER.sub('', said)}"
        text = f"{claim.person.label} has never {third(words)}"
    said = third(words if verb.ended else f"{'never' if never else 'not'} {words}")
    return Candidate(
        type="fact",
        subject=claim.person.thing,
        # There is one of these, which takes the place of the other.
        predicate="drinks_alcohol" if words == "drink alcohol" else "does",
        object=said,
        text=text,
        words=(claim.words,),
        negated=verb.ended,
        corrects=claim.corrects,
        valid_from=when.since,
        confidence=0.7,
    )


def _is_habit(verb: Verb, tail: str, when: When) -> bool:
    """Whether the sentence says how often or since when, or that it is over."""
    often = OFTEN.search(tail)
    lasting = verb.tense in (Tense.PRESENT, Tense.USED_TO) or (
        verb.tense is Tense.PERFECT and (when.since or often)
    )
    if not lasting or _VAGUE.search(tail) or (verb.negated and not verb.ended):
        return False
    if verb.lemma == "have" and not _WEEKDAYS.search(tail):
        return False
    is_stated = verb.tense is Tense.USED_TO or often or "never" in verb.adverbs or when.since
    is_over = verb.ended and verb.lemma in _BY_ITSELF
    return bool(is_stated or is_over or verb.adverbs & _USUALLY)


def _says_nothing(verb: str, said: str) -> bool:
    """ "I go a few times a week" does not tell where."""
    rest = OFTEN.sub("", said).strip(" ,")
    return verb not in _BY_ITSELF and (
        not rest or rest in ("professionally", "a lot", "out", "online", "together")
    )

"""Denials ("I no longer smoke") and statements about the past ("I used to live in Rome")."""

from __future__ import annotations

import re
from collections.abc import Sequence

from language.candidate import Candidate
from language.english.judging.verdicts import are_related, repeated, rival_of, updated
from language.english.judging.word_overlap import denies, overlap, same, words_of
from language.judging import Change, Judgement, Known, KnownFact, Verdict
from language.predicates import SPOUSE, is_single

# Denials of these are facts by themselves: "User does not smoke".
_WORTH_KNOWING = frozenset(
    {
        "diet",
        "smokes",
        "drinks_alcohol",
        "takes",
        "has_sibling",
        "has_child",
        "drives",
        "does",
        "speaks",
    }
)
_COUPLES = frozenset({"married_to", "engaged_to", "partner"})
_VEHICLES = frozenset({"car", "van", "truck", "motorbike", "motorcycle", "bike"})
_PAST = re.compile(
    r"\b(?:used to|was|were|had|did|\w+ed|taught|drove|went|ran|led|wrote|kept|spoke"
    r"|took|knew|ate|drank)\b"
)


def judge_denial(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """Delete the fact that a statement denies."""
    related = [
        one.fact for one in about if are_related(candidate, one.fact) and not denies(one.fact.text)
    ]
    hit = [fact for fact in related if _is_denied_by(candidate, fact)]
    if not hit:
        return None
    closest = max(
        hit,
        key=lambda fact: (
            fact.predicate == candidate.predicate,
            overlap(fact.object, candidate.object),
        ),
    )
    change = Change.CORRECTION if candidate.corrects else Change.SHIFT
    return Judgement(
        Verdict.DELETE, candidate, closest, change, why="it is said to be so no longer"
    )


def _is_denied_by(candidate: Candidate, fact: KnownFact) -> bool:
    if (
        candidate.predicate == fact.predicate
        and is_single(fact.predicate)
        and candidate.predicate in ("smokes", "drinks_alcohol")
    ):
        return True
    if candidate.object == SPOUSE:
        return fact.predicate in _COUPLES
    if candidate.object in ("job", "my job", "their job"):
        return fact.predicate in ("works_at", "works_as")
    if fact.predicate == "drives" and words_of(candidate.object) & words_of(" ".join(_VEHICLES)):
        return True
    if fact.predicate == "dislikes" and candidate.predicate != "dislikes":
        return False
    denied = words_of(candidate.object)
    return bool(denied) and (
        denied <= words_of(f"{fact.object} {fact.text}") or words_of(fact.object) <= denied
    )


def judge_denied_before(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    for one in about:
        if (
            one.fact.predicate == candidate.predicate
            and denies(one.fact.text)
            and same(one.fact.object, candidate.object)
        ):
            return repeated(candidate, one.fact)
    return None


def judge_denial_of_nothing(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """Add a denial that contradicts no known fact if it is worth knowing by itself."""
    if candidate.predicate not in _WORTH_KNOWING:
        return Judgement(Verdict.NONE, candidate, why="nothing of the kind was known")
    rival = rival_of(candidate, about)
    if rival is not None:
        return updated(candidate, rival, "it has changed")
    return Judgement(Verdict.ADD, candidate, why="nothing like it is known")


def judge_past(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "I used to live in Rome" ends a fact that says so, or is added as a past fact."""
    if candidate.valid_to is None or not _is_past(candidate.text):
        return None
    for one in about:
        if (
            one.fact.predicate == candidate.predicate
            and overlap(one.fact.object, candidate.object) >= 1
        ):
            return Judgement(Verdict.DELETE, candidate, one.fact, why="it is over")
    return Judgement(Verdict.ADD, candidate, why="it was so before")


def _is_past(text: str) -> bool:
    return _PAST.search(text) is not None

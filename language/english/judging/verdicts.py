"""Shared by all rules of judging: which facts compete, and common verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from language.facts import Candidate, Change, Judgement, Known, KnownFact, Verdict, is_single
from language.slugs import slug_of

# A statement with one predicate may deny or replace a fact with another one of its family.
_FAMILIES: tuple[frozenset[str], ...] = (
    frozenset({"works_at", "works_as", "reports_to"}),
    frozenset({"studies", "studies_at", "learns"}),
    frozenset({"likes", "dislikes", "opinion", "prefers", "does", "uses", "favourite", "learns"}),
    frozenset({"owns", "drives", "has_pet", "uses"}),
    frozenset({"married_to", "engaged_to", "partner", "relationship_status", "lives_with"}),
    frozenset({"plans", "wants"}),
    # Selling the shop ends running it.
    frozenset({"owns", "works_as"}),
    # "Bert died" ends having a dog of that name, or a husband.
    frozenset({"has_pet", "married_to", "engaged_to", "partner"}),
    frozenset({"diet", "does", "dislikes", "likes", "allergic_to"}),
    frozenset({"friend_of", "knows", "colleague_of", "lives_with"}),
)

# Judges a candidate beside the facts about its subject; None if the rule does not apply.
Rule = Callable[[Candidate, Sequence[Known]], Judgement | None]


def is_about(candidate: Candidate, fact: KnownFact) -> bool:
    return slug_of(fact.subject.name) == slug_of(candidate.subject.name)


def are_related(candidate: Candidate, fact: KnownFact) -> bool:
    pair = {candidate.predicate, fact.predicate}
    return len(pair) == 1 or any(pair <= family for family in _FAMILIES)


def rival_of(candidate: Candidate, about: Sequence[Known]) -> KnownFact | None:
    """The fact in the place of a candidate whose predicate allows one value at a time."""
    if not is_single(candidate.predicate):
        return None
    for one in about:
        if one.fact.predicate == candidate.predicate and one.fact.aspect == candidate.aspect:
            return one.fact
    return None


def updated(
    candidate: Candidate, fact: KnownFact, why: str, change: Change = Change.SHIFT, text: str = ""
) -> Judgement:
    if candidate.corrects and change is Change.SHIFT:
        change, why = Change.CORRECTION, "replaced by a correction"
    return Judgement(Verdict.UPDATE, candidate, fact, change, text, why)


def repeated(candidate: Candidate, fact: KnownFact) -> Judgement:
    return Judgement(Verdict.NONE, candidate, fact, why="it is known already")

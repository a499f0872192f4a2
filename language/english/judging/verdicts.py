"""What all rules of judging share: which facts compete, and how a verdict is put."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from language.candidate import Candidate
from language.judging import Change, Judgement, Known, KnownFact, Verdict
from language.predicates import is_single
from language.slugs import slug_of

# Predicates that one statement may deny or replace in another's stead.
_FAMILIES: tuple[frozenset[str], ...] = (
    frozenset({"works_at", "works_as", "reports_to"}),
    frozenset({"studies", "studies_at", "learns"}),
    frozenset({"likes", "dislikes", "opinion", "prefers", "does", "uses", "favourite", "learns"}),
    frozenset({"owns", "drives", "has_pet", "uses"}),
    frozenset({"married_to", "engaged_to", "partner", "relationship_status", "lives_with"}),
    frozenset({"plans", "wants"}),
    # Whoever sells the shop runs it no longer.
    frozenset({"owns", "works_as"}),
    # "Bert died" ends having a dog of that name, or a husband.
    frozenset({"has_pet", "married_to", "engaged_to", "partner"}),
    frozenset({"diet", "does", "dislikes", "likes", "allergic_to"}),
    frozenset({"friend_of", "knows", "colleague_of", "lives_with"}),
)

# What it makes of a candidate beside the facts about its subject; None where it has no say.
Rule = Callable[[Candidate, Sequence[Known]], Judgement | None]


def is_about(candidate: Candidate, fact: KnownFact) -> bool:
    return slug_of(fact.subject.name) == slug_of(candidate.subject.name)


def are_related(candidate: Candidate, fact: KnownFact) -> bool:
    pair = {candidate.predicate, fact.predicate}
    return len(pair) == 1 or any(pair <= family for family in _FAMILIES)


def rival_of(candidate: Candidate, about: Sequence[Known]) -> KnownFact | None:
    """Of what there is one at a time, the one there is."""
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
        change, why = Change.CORRECTION, "it was put right"
    return Judgement(Verdict.UPDATE, candidate, fact, change, text, why)


def repeated(candidate: Candidate, fact: KnownFact) -> Judgement:
    return Judgement(Verdict.NONE, candidate, fact, why="it is known already")

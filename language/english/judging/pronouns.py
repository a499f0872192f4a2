"""Pronouns at the start of a message: "she" is the person whom the latest facts name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from language.candidate import Candidate, Thing
from language.english.facts.people import ABSENT, RELATIONS, Relation
from language.judging import KnownFact


def has_pronoun_subject(candidate: Candidate) -> bool:
    """Whether the subject is a pronoun for a person whom the message does not name."""
    return candidate.subject.name in ABSENT


@dataclass(frozen=True, slots=True)
class _Someone:
    name: str
    relation: Relation
    fact: KnownFact


def resolve_pronoun(candidate: Candidate, latest: Sequence[KnownFact]) -> Candidate | None:
    """The candidate about the person whom the latest facts name; None if it is not just one.

    Args:
        latest: Active facts of the same scope, latest first.
    """
    feminine = candidate.subject.name == ABSENT[0]
    people = _named(latest)
    fitting = [
        one
        for fact in latest
        for one in _in(fact, people)
        if not one.relation.animal and one.relation.feminine in (feminine, None)
    ]
    if not fitting:
        return None
    first = fitting[0]
    others = {one.name for one in fitting if one.fact.said_in == first.fact.said_in}
    if len(others) > 1:
        return None
    text = candidate.text.replace(candidate.subject.name, first.name, 1)
    return replace(candidate, subject=Thing(first.name, "person"), text=text)


def _named(facts: Sequence[KnownFact]) -> dict[str, Relation]:
    """The relations of people whom facts name as a sister, a friend or the like."""
    found: dict[str, Relation] = {}
    for fact in facts:
        if fact.thing is not None and fact.thing.kind == "person":
            for role in fact.tags:
                if role in RELATIONS:
                    found.setdefault(fact.thing.name, RELATIONS[role])
    return found


def _in(fact: KnownFact, people: dict[str, Relation]) -> Iterator[_Someone]:
    """The people whom a fact names, "User's mum" too."""
    names = [fact.subject.name]
    if fact.thing is not None:
        names.append(fact.thing.name)
    for name in names:
        role = name.rpartition("'s ")[2] if "'s " in name else ""
        relation = people.get(name) or RELATIONS.get(role)
        if relation is not None:
            yield _Someone(name, relation, fact)

"""How far two annotators of the same conversations agree.

The second one reads the conversation without the first one's facts, and without those of the
person's other conversations: their facts are in `second.jsonl`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.corpus import OWNER, Person, Stated
from language.english.facts.people import RELATIONS
from language.facts import PREDICATES, category_of

# Predicates whose categories begin with words of one row say nearly the same of a value.
_ALIKE = (
    "identity people",
    "home",
    "work",
    "health habits",
    "things skills education",
    "preferences opinions goals",
    "events plans",
)
_WORD = re.compile(r"\w+")
Names = Mapping[str, frozenset[str]]
# Of one person: what an annotator found, what another reader found, and what people are called.
Readings = tuple[Sequence[Stated], Sequence[Stated], Names]
_Alike = Callable[[Stated, Stated, Names], bool]


def alike_predicates(predicate: str) -> tuple[str, ...]:
    """The predicates that may say it; any (`*`), if it is not a listed one."""
    row = next((row for row in _ALIKE if _root(predicate) in row.split()), "")
    listed = tuple(name for name in PREDICATES if _root(name) in row.split())
    return (predicate, *listed) if row else ("*",)


def _root(predicate: str) -> str:
    return category_of(predicate).partition("/")[0]


def agreement(people: Sequence[Person]) -> dict[str, Any]:
    """Figures of the conversations that were annotated twice.

    `facts` has F1 by how much must agree: subject, predicate and value; a predicate nearly the
    same; subject and value alone. `durable` has the share of messages on which both say whether
    they state something durable, and Cohen's kappa. `no_fact` is F1 of the words that look like a
    fact and are none.
    """
    twice = [_both(person) for person in people if person.second]
    facts = [(stated(first), stated(second)) for first, second, _ in twice]
    named = [names_of(person) for person in people if person.second]
    levels = compared([(*pair, names) for pair, names in zip(facts, named, strict=True)])
    none = [(_none(first), _none(second)) for first, second, _ in twice]
    marks = [
        (message in _messages(first), message in _messages(second))
        for (first, second), (_, _, messages) in zip(facts, twice, strict=True)
        for message in messages
    ]
    return {
        "conversations": sum(len(_conversations(person.second)) for person in people),
        "messages": len(marks),
        "facts": {
            "first": sum(len(first) for first, _ in facts),
            "second": sum(len(second) for _, second in facts),
            **{f"f1{level}": figures["f1"] for level, figures in levels.items()},
            "second_as_reader": levels,
        },
        "durable": {"agree": _agreed(marks), "kappa": kappa(marks)},
        "no_fact": {"f1": _f1(none, _overlap)},
    }


def compared(readings: Sequence[Readings]) -> dict[str, dict[str, float | None]]:
    """Precision, recall and F1 of the second readings, by how much must agree with the first.

    Those of two annotators, or of an annotator and a program: the rules are the same.
    """
    alike = {"": _same, "_predicate_alike": _nearly_same, "_any_predicate": _same_value}
    return {level: _compared(readings, same) for level, same in alike.items()}


def _compared(readings: Sequence[Readings], alike: _Alike) -> dict[str, float | None]:
    matched = sum(_matched(first, second, alike, names) for first, second, names in readings)
    there = sum(len(first) for first, _, _ in readings)
    found = sum(len(second) for _, second, _ in readings)
    return {
        "precision": _ratio(matched, found),
        "recall": _ratio(matched, there),
        "f1": _ratio(2 * matched, there + found),
    }


def _ratio(some: int, of: int) -> float | None:
    return round(some / of, 3) if of else None


def names_of(person: Person) -> Names:
    """What the owner's people are called, by the predicate of their role: has_sibling, Esther."""
    named: dict[str, set[str]] = {}
    for fact in person.facts:
        if fact.subject == OWNER:
            named.setdefault(fact.predicate, set()).add(fact.value.casefold())
    return {predicate: frozenset(names) for predicate, names in named.items()}


def kappa(marks: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of two yes-or-no judgements; None where chance alone explains all."""
    if not marks:
        return None
    shares = [sum(mark[of] for mark in marks) / len(marks) for of in (0, 1)]
    by_chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
    observed = sum(first == second for first, second in marks) / len(marks)
    return None if by_chance == 1 else round((observed - by_chance) / (1 - by_chance), 3)


def _both(person: Person) -> tuple[list[Stated], list[Stated], list[str]]:
    """What either annotator says of the conversations read twice, and the messages there."""
    twice = _conversations(person.second)
    first = [fact for fact in person.facts if fact.conversation in twice]
    messages = [
        name
        for each in person.talk.transcripts
        if each.external_id in twice
        for name in (turn.external_id for turn in each.turns)
    ]
    return first, list(person.second), messages


def _conversations(facts: Sequence[Stated]) -> set[str]:
    return {fact.conversation for fact in facts}


def stated(annotated: Sequence[Stated]) -> list[Stated]:
    return [fact for fact in annotated if fact.event != "none"]


def _none(annotated: Sequence[Stated]) -> list[Stated]:
    return [fact for fact in annotated if fact.event == "none"]


def _messages(facts: Sequence[Stated]) -> set[str]:
    return {fact.at for fact in facts}


def _agreed(marks: Sequence[tuple[bool, bool]]) -> float | None:
    if not marks:
        return None
    return round(sum(first == second for first, second in marks) / len(marks), 3)


def _f1(pairs: Sequence[tuple[Sequence[Stated], Sequence[Stated]]], alike: _Alike) -> float | None:
    matched = sum(_matched(first, second, alike, {}) for first, second in pairs)
    every = sum(len(first) + len(second) for first, second in pairs)
    return _ratio(2 * matched, every)


def _matched(first: Sequence[Stated], second: Sequence[Stated], alike: _Alike, names: Names) -> int:
    """Pairs, each fact in one at most; of several that fit, the one with most words in common."""
    left = list(second)
    matched = 0
    for fact in first:
        fitting = [other for other in left if other.at == fact.at and alike(fact, other, names)]
        if fitting:
            left.remove(max(fitting, key=lambda other: _common(fact.value, other.value)))
            matched += 1
    return matched


def _same(one: Stated, other: Stated, names: Names) -> bool:
    return one.predicate == other.predicate and _same_value(one, other, names)


def _nearly_same(one: Stated, other: Stated, names: Names) -> bool:
    alike = alike_predicates(one.predicate)
    return (other.predicate in alike or "*" in alike) and _same_value(one, other, names)


def _same_value(one: Stated, other: Stated, names: Names) -> bool:
    return _same_subject(one.subject, other.subject, names) and _same_words(one.value, other.value)


def _same_subject(one: str, other: str, names: Names) -> bool:
    """The owner is only the owner; "User's sister" is Esther, if the owner's sister is."""
    if OWNER in (one, other):
        return one == other
    return _within(one, other) or _is_called(one, other, names) or _is_called(other, one, names)


def _is_called(role: str, name: str, names: Names) -> bool:
    relation = RELATIONS.get(_words(role)[-1]) if _words(role) else None
    called = names.get(relation.predicate, frozenset()) if relation else frozenset()
    return any(_within(name, each) for each in called)


def _same_words(one: str, other: str) -> bool:
    """At least half of the words of the shorter one are in the other."""
    fewest = min(len(set(_words(one))), len(set(_words(other))))
    return _within(one, other) or (fewest > 0 and 2 * _common(one, other) >= fewest)


def _within(one: str, other: str) -> bool:
    one, other = one.casefold(), other.casefold()
    return one in other or other in one


def _common(one: str, other: str) -> int:
    return (Counter(set(_words(one))) & Counter(set(_words(other)))).total()


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _overlap(one: Stated, other: Stated, names: Names) -> bool:
    return _within(one.words, other.words) or _same_words(one.words, other.words)

"""How far two annotators of the same conversations agree.

The second one reads the conversation without the first one's facts, and without those of the
person's other conversations: their facts are in `second.jsonl`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from bench.corpus import Person, Stated
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
_Alike = Callable[[Stated, Stated], bool]


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
    facts = [(_facts(first), _facts(second)) for first, second, _ in twice]
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
            "f1": _f1(facts, _same),
            "f1_predicate_alike": _f1(facts, _nearly_same),
            "f1_any_predicate": _f1(facts, _same_value),
        },
        "durable": {"agree": _agreed(marks), "kappa": kappa(marks)},
        "no_fact": {"f1": _f1(none, _overlap)},
    }


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


def _facts(annotated: Sequence[Stated]) -> list[Stated]:
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
    matched = sum(_matched(first, second, alike) for first, second in pairs)
    every = sum(len(first) + len(second) for first, second in pairs)
    return round(2 * matched / every, 3) if every else None


def _matched(first: Sequence[Stated], second: Sequence[Stated], alike: _Alike) -> int:
    """Pairs, each fact in one at most; of several that fit, the one with most words in common."""
    left = list(second)
    matched = 0
    for fact in first:
        fitting = [other for other in left if other.at == fact.at and alike(fact, other)]
        if fitting:
            left.remove(max(fitting, key=lambda other: _common(fact.value, other.value)))
            matched += 1
    return matched


def _same(one: Stated, other: Stated) -> bool:
    return one.predicate == other.predicate and _same_value(one, other)


def _nearly_same(one: Stated, other: Stated) -> bool:
    alike = alike_predicates(one.predicate)
    return (other.predicate in alike or "*" in alike) and _same_value(one, other)


def _same_value(one: Stated, other: Stated) -> bool:
    return _within(one.subject, other.subject) and _same_words(one.value, other.value)


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


def _overlap(one: Stated, other: Stated) -> bool:
    return _within(one.words, other.words) or _same_words(one.words, other.words)

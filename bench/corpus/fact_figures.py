"""What mining learns from the corpus, beside what its people state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tqdm import tqdm

from bench.corpus import OWNER, Person, Stated
from bench.fact_scenarios import FATES, Expected, Scenario
from bench.fact_scores import Score, by_tag, found_in, palace_named, report, score, share
from language.facts import PREDICATES, USER, category_of
from palace.models import Evidence, Palace
from palace.pipeline import mine

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
# Of a value's words, so many of the longest must be found, each by its first letters.
WORDS, LETTERS = 3, 5
_WORD = re.compile(r"\w+")
_STANCES = {"for": ("positive",), "against": ("negative",), "mixed": ()}


def figures(people: Sequence[Person]) -> dict[str, Any]:
    """Precision, recall and stale facts, overall and by language, as `fact_scores.report` has them.

    `taken` is the share of words that look like a fact and are none, on which an active fact rests.
    Call it in a schema of its own: it makes a palace a person.
    """
    scores: list[Score] = []
    taken, all_none = 0, 0
    for person in tqdm(people, desc="facts", unit="person", disable=None):
        palace = palace_named(person.talk.id)
        for transcript in person.talk.transcripts:
            mine(palace, transcript)
        scores.append(score(scenario_of(person), found_in(palace)))
        none = [fact for fact in person.facts if fact.event == "none"]
        taken, all_none = taken + _taken(palace, none), all_none + len(none)
    return {
        "overall": report(scores),
        "by_language": by_tag(scores),
        "taken": share(taken, all_none),
        "messages": sum(len(person.talk.turns()) for person in people),
    }


def misses(scores: Sequence[Score]) -> Iterator[str]:
    """Lines on what was not found, and what was made up."""
    for one in scores:
        yield from (f"{one.scenario.id} missed {each}" for each in one.missed)
        yield from (f"{one.scenario.id} extra {each}" for each in one.extra)


def scenario_of(person: Person) -> Scenario:
    """What must be active at the end, and what must not be."""
    stated = [fact for fact in person.facts if fact.event != "none"]
    closed = {name for fact in stated for name in fact.closes}
    open_now = [fact for fact in stated if fact.id not in closed and fact.event != "ends"]
    return Scenario(
        id=person.talk.id,
        tags=(person.talk.languages[0],),
        messages=(),
        active=tuple(_expected(person, fact) for fact in open_now),
        retired=tuple(_expected(person, fact, FATES) for fact in stated if fact.id in closed),
    )


def _expected(person: Person, fact: Stated, how: tuple[str, ...] = ()) -> Expected:
    return Expected(
        subject=(USER, person.talk.id) if fact.subject == OWNER else (f"*{fact.subject}*",),
        predicate=_alike(fact.predicate),
        words=_words_of(fact.value),
        stance=_STANCES.get(fact.stance, ()),
        how=how,
    )


def _alike(predicate: str) -> tuple[str, ...]:
    """The predicates that may say it; any, if it is not a listed one."""
    row = next((row for row in _ALIKE if _root(predicate) in row.split()), "")
    listed = tuple(name for name in PREDICATES if _root(name) in row.split())
    return (predicate, *listed) if row else ("*",)


def _root(predicate: str) -> str:
    return category_of(predicate).partition("/")[0]


def _words_of(value: str) -> tuple[str, ...]:
    longest = sorted(_WORD.findall(value), key=len, reverse=True)[:WORDS]
    return tuple(f"{word[:LETTERS]}*" if len(word) > LETTERS else word for word in longest)


def _taken(palace: Palace, none: Sequence[Stated]) -> int:
    rows = Evidence.objects.filter(palace=palace, fact__retired_at=None).values_list(
        "drawer__external_id", "drawer__text", "start", "end"
    )
    resting = list(rows)
    return sum(any(_overlaps(fact, *row) for row in resting) for fact in none)


def _overlaps(fact: Stated, message: str, text: str, start: int, end: int) -> bool:
    at = text.find(fact.words)
    return fact.at == message and at < end and start < at + len(fact.words)

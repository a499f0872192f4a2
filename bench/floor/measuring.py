"""What recall's floor does to questions: made-up ones, and those of data sets already taken in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np
from django.contrib.auth import get_user_model
from tqdm import tqdm

from bench.datasets.base import Case
from bench.floor.fitting import ANSWERABLE, NEAR_MISS, OFF_TOPIC, Observation
from bench.floor.reading import Answerable, Person
from bench.runs import palace_of
from language.transcripts import Transcript
from palace.models import Drawer, Evidence, Fact, Palace
from palace.pipeline import mine
from palace.recall import (
    Found,
    RecallRequest,
    fact_floor,
    facts_for,
    ranking,
    read_request_context,
    search,
)
from palace.recall.recipes import recipe_named
from palace.recall.relevance import INSTRUCTION
from palace.storage import fill_missing_vectors
from palace.storage.indexing import fact_vectors
from palace.storage.indexing.spaces import active_space

RECIPE = "default"
# A palace of all the people together, for what is found by chance among more drawers.
EVERYBODY = "everybody"
# About this many palaces of a data set get all off-topic questions.
ASKED_ALL = 5
# An answer counts as found within this rank.
FOUND = 10


def take_in(people: Sequence[Person]) -> dict[str, Palace]:
    """A palace each, and one of everybody, by name."""
    palaces = {EVERYBODY: _palace(EVERYBODY, [t for each in people for t in each.transcripts])}
    for each in tqdm(people, desc="in", unit="person", disable=None):
        palaces[each.id] = _palace(each.id, each.transcripts)
    while fill_missing_vectors():
        pass
    return palaces


def _palace(name: str, transcripts: Sequence[Transcript]) -> Palace:
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    palace, _ = Palace.objects.get_or_create(owner=owner, subject=name)
    for transcript in transcripts:
        mine(palace, transcript)
    fact_vectors.fill_missing(palace, active_space(), list(Fact.objects.within(palace)))
    return palace


def observe(
    people: Sequence[Person], palaces: dict[str, Palace], off_topic: Sequence[str]
) -> tuple[list[Observation], Counter[str]]:
    """Ask each question in its person's palace and in the combined one; also count facts."""
    found: list[Observation] = []
    facts: Counter[str] = Counter()
    for person in tqdm(people, desc="asked", unit="person", disable=None):
        for name in (person.id, EVERYBODY):
            for kind, text, gold in _questions_of(person):
                result = ask(palaces[name], text, person.now)
                found.append(_observation(kind, palaces[name], person.id, result, gold))
                facts += _facts(palaces[name], result, kind, gold)
    for name, palace in palaces.items():
        for text in off_topic:
            result = ask(palace, text, people[0].now)
            found.append(_observation(OFF_TOPIC, palace, name, result, frozenset()))
            facts += _facts(palace, result, OFF_TOPIC, frozenset())
    return found, facts


def _questions_of(person: Person) -> Iterator[tuple[str, str, frozenset[str]]]:
    each: Answerable
    for each in person.answerable:
        yield ANSWERABLE, each.text, each.gold
    for text in person.near_misses:
        yield NEAR_MISS, text, frozenset()


def ask(palace: Palace, text: str, now: datetime | None) -> Found:
    request = RecallRequest(text, top_k=20, now=now, recipe=RECIPE, rerank=False)
    return search(palace, request, read_request_context(palace, request))


def _observation(
    kind: str, palace: Palace, person: str, result: Found, gold: frozenset[str]
) -> Observation:
    scored, near = result.scored, result.scored.relevance.closeness
    candidates, keys = scored.candidates, _keys(palace, gold)
    on_gold = np.array([key in keys for key in candidates.drawers.tolist()], dtype=np.bool_)
    first = ranking(scored.scores, candidates.drawers)[:FOUND]
    instructs = on_gold & (candidates.preference >= INSTRUCTION)
    advised = result.question.intent.asks_advice and bool(instructs.any())
    return Observation(
        kind,
        palace.subject,
        person,
        exempt=bool(scored.relevance.exempt) or advised,
        found=bool(on_gold[first].any()) or kind != ANSWERABLE,
        cosine=round(near.cosine, 3),
        deviations=round(near.deviations, 3),
        words=round(near.words, 3),
        known=round(near.known, 3),
        number=near.number,
        personal=near.personal,
    )


def _keys(palace: Palace, gold: frozenset[str]) -> set[int]:
    rows = Drawer.objects.within(palace).values_list("pk", "conversation", "external_id")
    return {key for key, conversation, turn in rows if f"{conversation}/{turn}" in gold}


def _facts(palace: Palace, result: Found, kind: str, gold: frozenset[str]) -> Counter[str]:
    """How many questions of a kind bring facts without and with the floor; how many bring facts
    that rest on their answers.
    """
    before = facts_for(palace, result.space, result.question, limit=recipe_named(RECIPE).facts)
    floor = fact_floor(result.question, is_refused=result.scored.relevance.is_refused)
    after = facts_for(
        palace, result.space, result.question, floor=floor, limit=recipe_named(RECIPE).facts
    )
    counts = {"without floor": bool(before), "with floor": bool(after)}
    if gold:
        on_gold = _resting_on(palace, gold)
        counts |= {
            "gold facts without floor": any(one.fact.pk in on_gold for one in before),
            "gold facts with floor": any(one.fact.pk in on_gold for one in after),
        }
    return Counter({f"{kind}, {name}": int(count) for name, count in counts.items()})


def _resting_on(palace: Palace, gold: frozenset[str]) -> set[int]:
    rows = Evidence.objects.filter(palace=palace).values_list(
        "fact", "drawer__conversation", "drawer__external_id"
    )
    return {fact for fact, conversation, turn in rows if f"{conversation}/{turn}" in gold}


def measure(cases: Sequence[Case], off_topic: Sequence[str]) -> dict[str, float | int]:
    """Shares of a data set's questions, and of ours asked of its palaces, that are refused.

    An answerable one that is refused has lost all of its gold.
    """
    totals: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    step = max(1, len(cases) // ASKED_ALL)
    for at, case in enumerate(tqdm(cases, desc="asked", unit="case", disable=None)):
        palace = palace_of(case)
        for question in case.questions:
            kind = "unanswerable" if question.unanswerable else ANSWERABLE
            totals[kind] += 1
            refused[kind] += _is_refused(ask(palace, question.text, question.now))
        now = case.questions[0].now if case.questions else None
        for text in off_topic[at % step :: step]:
            totals[OFF_TOPIC] += 1
            refused[OFF_TOPIC] += _is_refused(ask(palace, text, now))
    return {
        **{f"{kind} asked": number for kind, number in sorted(totals.items())},
        **{f"{kind} refused": round(refused[kind] / totals[kind], 4) for kind in sorted(totals)},
    }


def _is_refused(found: Found) -> bool:
    return found.scored.relevance.is_refused

"""Questions that calibrate recall's floor: made-up ones from text files, those of data sets already
taken in, and what recall makes of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from django.contrib.auth import get_user_model
from tqdm import tqdm

from bench.datasets import BadData, Case
from bench.floor_regression import ANSWERABLE, NEAR_MISS, OFF_TOPIC, Observation
from bench.runs import palace_of
from language.transcripts import Role, Transcript, Turn
from palace.mining.pipeline import mine
from palace.models import Drawer, Evidence, Fact, Palace
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

FOLDER = Path(__file__).parent / "floor"
PALACES, OFF_TOPIC_FILE = FOLDER / "palaces.txt", FOLDER / "off_topic.txt"
APART = timedelta(minutes=2)

RECIPE = "default"
# A palace of all people, to measure chance matches among more drawers.
EVERYBODY = "everybody"
# About so many palaces of a data set are asked all off-topic questions together.
ASKED_ALL = 5
# An answer counts as found within this rank.
FOUND = 10


@dataclass(frozen=True, slots=True)
class Answerable:
    """A question and the ids of its answers, as `conversation/message`."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Person:
    """One palace and its questions.

    Attributes:
        now: When the questions are asked.
        near_misses: Questions similar to the palace's content, without an answer.
    """

    id: str
    now: datetime
    transcripts: tuple[Transcript, ...]
    answerable: tuple[Answerable, ...]
    near_misses: tuple[str, ...]


def read_people(path: Path = PALACES) -> list[Person]:
    """
    Raises:
        BadData: a line is invalid, or a gold message is missing.
    """
    blocks: list[list[str]] = []
    for line in _lines(path):
        if line.startswith("= "):
            blocks.append([])
        elif not blocks:
            raise BadData(f"{path} does not begin with a palace: {line!r}.")
        blocks[-1].append(line)
    return [_person(block) for block in blocks]


def read_off_topic(path: Path = OFF_TOPIC_FILE) -> dict[str, str]:
    """Kinds by question."""
    kind, found = "", {}
    for line in _lines(path):
        if line.startswith("["):
            kind = line.strip("[]")
        else:
            found[line] = kind
    return found


def _lines(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def _person(block: Sequence[str]) -> Person:
    name, now = _named(block[0])
    transcripts = tuple(_transcripts(name, block))
    lines_asked = [line[2:] for line in block if line.startswith("? ")]
    return Person(
        id=name,
        now=now,
        transcripts=transcripts,
        answerable=tuple(_answerable(line, transcripts) for line in lines_asked),
        near_misses=tuple(line[2:] for line in block if line.startswith("~ ")),
    )


def _named(line: str) -> tuple[str, datetime]:
    try:
        name, moment = line[2:].split(" | ")
        return name.strip(), datetime.fromisoformat(moment).replace(tzinfo=UTC)
    except ValueError:
        raise BadData(f"{line!r} is not a name and a time.") from None


def _transcripts(person: str, block: Sequence[str]) -> Iterator[Transcript]:
    sessions: list[list[str]] = []
    for line in block[1:]:
        if line.startswith("@ "):
            sessions.append([line])
        elif line[:2] not in ("? ", "~ "):
            sessions[-1].append(line)
    for heading, *said in sessions:
        title, began = _named(heading)
        turns = (_turn(at, line, began) for at, line in enumerate(said))
        yield Transcript("plain", f"{person}-{title}", title, tuple(turns))


def _turn(at: int, line: str, began: datetime) -> Turn:
    name, colon, text = line.partition(": ")
    if not colon:
        raise BadData(f"{line!r} does not say who speaks.")
    roles: dict[str, Role] = {"user": "user", "assistant": "assistant"}
    speaker = "" if name in roles else name
    return Turn(str(at), roles.get(name, "user"), text, began + at * APART, speaker)


def _answerable(line: str, transcripts: Sequence[Transcript]) -> Answerable:
    text, arrow, parts = line.partition(" => ")
    gold = {
        f"{each.external_id}/{turn.external_id}"
        for part in parts.split(" & ")
        for each in transcripts
        for turn in each.turns
        if part in turn.text
    }
    if not (arrow and gold):
        raise BadData(f"{line!r} names no existing message.")
    return Answerable(text, frozenset(gold))


def take_in(people: Sequence[Person]) -> dict[str, Palace]:
    """A palace for each person and one for all, by name."""
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
    first = ranking(scored.scores)[:FOUND]
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
    """Count questions with facts, without and with the floor, and those with facts whose
    evidence is a gold message.
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
    """The shares of refused questions: of a data set, and of ours asked in its palaces.

    A refused answerable question has lost all of its gold.
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

"""Training examples: questions with known answers, and the features of their candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from django.utils import timezone

from bench.datasets.base import Case, Question
from bench.runs import palace_of
from isolation.raw_sql import fetch_rows
from palace.models import Drawer, EmbeddingSpace, Palace
from palace.recall import Query, candidate_features, read_query
from palace.storage.indexing.spaces import active_space

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Aim = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Openings:
    """The vectors of the drawers' first passages, on which the adapter is fitted.

    Attributes:
        keys: Keys of the drawers, ascending.
        vectors: One row a drawer (n, dimensions).
    """

    keys: Ids
    vectors: Floats


@dataclass(frozen=True, slots=True)
class TrainingQuestion:
    """A question with its vector and the drawers that answer it.

    Attributes:
        person: The owner of the palace: folds are made of whole people.
        gold: Keys of drawers; empty where only the conversations are known.
    """

    dataset: str
    person: str
    question: Question
    query: Query
    gold: Ids
    openings: Openings

    @property
    def vector(self) -> Floats:
        if self.query.vector is None:
            raise ValueError(f"There is no vector of {self.question.text!r}: {self.query.note}")
        return self.query.vector


@dataclass(frozen=True, slots=True)
class Example:
    """A question's candidates with their features.

    Attributes:
        names: The features.
        values: One row a candidate, one column a feature.
        gold: Whether a candidate answers the question.
        sessions: Each candidate's conversation.
        turns: Each candidate as `conversation/message`.
    """

    dataset: str
    person: str
    question: Question
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    values: Floats
    gold: npt.NDArray[np.bool_]
    sessions: tuple[str, ...]
    turns: tuple[str, ...]


def asked(dataset: str, case: Case) -> Iterator[TrainingQuestion]:
    """The questions of a case whose palace is ingested."""
    palace, space = palace_of(case), active_space()
    openings = _openings(palace, space)
    keys = {f"{c}/{e}": key for key, c, e in _messages(palace)}
    for question in case.questions:
        if not question.gold_sessions:
            continue
        query = read_query(
            palace,
            space,
            question.text,
            now=question.now or timezone.now(),
            as_of=None,
            by_meaning=True,
        )
        gold = np.array(sorted(keys[turn] for turn in question.gold_turns), dtype=np.int64)
        yield TrainingQuestion(dataset, case.id, question, query, gold, openings)


def examples(asked: Sequence[TrainingQuestion], palace: Palace, adapted: Aim) -> Iterator[Example]:
    """The candidates and features that recall finds for each question about `palace`.

    Args:
        adapted: Turns a question's vector towards its answers.
    """
    space = active_space()
    names = {key: (conversation, turn) for key, conversation, turn in _messages(palace)}
    for each in asked:
        query = replace(each.query, adapted=adapted(each.vector))
        candidates, values = candidate_features(palace, space, query)
        places = [names[key] for key in candidates.drawers.tolist()]
        sessions = tuple(conversation for conversation, _ in places)
        turns = tuple(f"{conversation}/{turn}" for conversation, turn in places)
        gold = np.isin(candidates.drawers, each.gold)
        if not len(each.gold):
            gold = np.isin(sessions, list(each.question.gold_sessions))
        yield Example(
            dataset=each.dataset,
            person=each.person,
            question=each.question,
            kinds=query.kinds,
            names=tuple(values),
            values=np.stack(list(values.values()), axis=1).astype(np.float32),
            gold=gold,
            sessions=sessions,
            turns=turns,
        )


def _messages(palace: Palace) -> list[tuple[int, str, str]]:
    rows = Drawer.objects.within(palace).values_list("pk", "conversation", "external_id")
    return list(rows)


def _openings(palace: Palace, space: EmbeddingSpace) -> Openings:
    rows = fetch_rows(
        "SELECT drawer_id, embedding::real[] FROM palace_passage"
        " WHERE palace_id = %s AND space_id = %s AND ordinal = 0 AND embedding IS NOT NULL"
        " ORDER BY drawer_id",
        [palace.pk, space.pk],
    )
    keys, vectors = zip(*rows, strict=True)
    return Openings(np.array(keys, dtype=np.int64), np.array(vectors, dtype=np.float32))

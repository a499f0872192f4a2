"""Examples with known answers; the question's adapter and the recipes' weights that they train.

For one question the candidates' scores make a distribution by softmax, and the answers get as much
of it as possible: the cross entropy of ListNet (Cao et al. 2007). Adam (Kingma, Ba 2015) with a
fixed seed and order: the same numbers come out of the same questions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from django.utils import timezone

from bench.datasets import Case, Question
from bench.metrics import all_at, any_at, mean, recall_at
from bench.runs import palace_of
from isolation.raw_sql import fetch_rows
from palace.models import Drawer, EmbeddingSpace, Palace
from palace.recall import MINILM, Query, candidate_features, ranking, read_query
from palace.recall.recipes import FIXED_WEIGHTS
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
    return list(Drawer.objects.within(palace).values_list("pk", "conversation", "external_id"))


def _openings(palace: Palace, space: EmbeddingSpace) -> Openings:
    rows = fetch_rows(
        "SELECT drawer_id, embedding::real[] FROM palace_passage"
        " WHERE palace_id = %s AND space_id = %s AND ordinal = 0 AND embedding IS NOT NULL"
        " ORDER BY drawer_id",
        [palace.pk, space.pk],
    )
    keys, vectors = zip(*rows, strict=True)
    return Openings(np.array(keys, dtype=np.int64), np.array(vectors, dtype=np.float32))


SEED = 7
FOLDS = 5
# Kinds of question (see `Query.kinds`) that weigh features their own way.
KINDS = ("names", "times", "advice", "survey", "user", "assistant")
# Features that recall without vectors lacks.
OF_MEANING = tuple(
    "meaning.best meaning.first exchange.before exchange.after exchange.answer room.meaning"
    " agreement.exchange length.passages".split()
)
# Features that speak for a message: a negative weight would be an accident of the questions.
FOR = ("meaning", "exchange", "room", "words", "speaker", "time", "preference")


class Adam:
    """Gradient descent with a step size for each number (Adam)."""

    def __init__(self, shape: tuple[int, ...], rate: float) -> None:
        self.rate = rate
        self.steps = 0
        self.mean = np.zeros(shape, dtype=np.float32)
        self.square = np.zeros(shape, dtype=np.float32)

    def step(self, gradient: Floats) -> Floats:
        """The step to subtract."""
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        return np.asarray(self.rate * mean / (np.sqrt(square) + 1e-8), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Pair:
    """A question's vector, the vectors it is compared with, and the places of answers.

    Attributes:
        weight: How much it counts relative to the others.
    """

    question: Floats
    passages: Floats
    answers: npt.NDArray[np.int64]
    weight: float


# The embedders whose questions are adapted. For e5 it costs people left out six points of turn@10:
# its cosines lie too close together for so few questions.
ADAPTED = (MINILM,)
# Chosen by cross-validation over people.
SHARPNESS = 15.0
PULL = 0.01
EPOCHS = 3
BATCH = 64
ADAPTER_RATE = 0.0005


def fit_adapter(pairs: Sequence[Pair]) -> Floats:
    """Fit the matrix whose product with a question's vector is added to it; pulled towards 0."""
    size = len(pairs[0].question)
    turn = np.zeros((size, size), dtype=np.float32)
    adam, draw = Adam(turn.shape, ADAPTER_RATE), np.random.default_rng(SEED)
    for _ in range(EPOCHS):
        order = draw.permutation(len(pairs))
        for batch in np.array_split(order, len(pairs) // BATCH + 1):
            gradient = PULL * turn
            for place in batch:
                gradient += _gradient(turn, pairs[place]) / len(batch)
            turn -= adam.step(gradient)
    return turn


def _gradient(turn: Floats, pair: Pair) -> Floats:
    scores = SHARPNESS * (pair.passages @ (pair.question + turn @ pair.question))
    share = np.exp(scores - scores.max())
    share /= share.sum()
    share[pair.answers] -= 1 / len(pair.answers)
    towards = (pair.weight * SHARPNESS) * (pair.passages.T @ share)
    return np.outer(towards, pair.question).astype(np.float32)


@dataclass(frozen=True, slots=True)
class List:
    """A question's candidates.

    Attributes:
        values: One row a candidate, one column a feature.
        gold: Which of them answer it; at least one.
        kinds: For each kind of question, whether it is of that kind (0 or 1).
        weight: How much it counts relative to the others.
    """

    values: Floats
    gold: npt.NDArray[np.bool_]
    kinds: Floats
    weight: float


# Towards 0, of weights in standard deviations; what a kind of question adds is held back more.
# Chosen by cross-validation over people.
RIDGE = 0.3
RIDGE_OF_KINDS = 3.0
STEPS = 400
WEIGHT_RATE = 0.03


def fit_weights(
    lists: Sequence[List], never_negative: npt.NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """The weight of each feature (m), and what each kind of question adds to it (k, m).

    Args:
        never_negative: Which features must not get a weight below 0 (m); none of them if missing.
    """
    values = np.concatenate([each.values for each in lists])
    spread = values.std(axis=0)
    used = spread > 1e-6
    values = (values - values.mean(axis=0)) / np.where(used, spread, 1) * used
    sizes = [len(each.values) for each in lists]
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    of_question = np.repeat(np.arange(len(lists)), sizes)
    gold = np.concatenate([each.gold / each.gold.sum() for each in lists]).astype(np.float32)
    importance = np.array([each.weight for each in lists], dtype=np.float32)
    importance /= importance.sum()
    kinds = np.stack([np.r_[np.float32(1), each.kinds] for each in lists])
    ridge = np.full((kinds.shape[1], 1), RIDGE_OF_KINDS, dtype=np.float32)
    ridge[0] = RIDGE
    weights = np.zeros((kinds.shape[1], values.shape[1]), dtype=np.float32)
    adam = Adam(weights.shape, WEIGHT_RATE)
    for _ in range(STEPS):
        scores = np.einsum("ij,ij->i", values, (kinds @ weights)[of_question])
        share = np.exp(scores - np.maximum.reduceat(scores, starts)[of_question])
        share /= np.add.reduceat(share, starts)[of_question]
        error = (share - gold) * importance[of_question]
        slopes = np.add.reduceat(error[:, None] * values, starts, axis=0)
        weights -= adam.step(kinds.T @ slopes + ridge * weights)
        if never_negative is not None:
            weights[0, never_negative] = np.maximum(weights[0, never_negative], 0)
    weights = weights / np.where(used, spread, 1) * used
    return weights[0], weights[1:]


@dataclass(frozen=True, slots=True)
class Learnt:
    """Weights by feature, and what a kind of question adds to them."""

    weights: Mapping[str, float]
    more: Mapping[str, Mapping[str, float]]

    def score(self, example: Example, names: Sequence[str]) -> Floats:
        weights = [
            self.weights[name]
            + sum(self.more.get(kind, {}).get(name, 0.0) for kind in example.kinds)
            if name in self.weights
            else 0.0
            for name in names
        ]
        return example.values @ np.array(weights, dtype=np.float32)


def folds(asked: Sequence[TrainingQuestion]) -> dict[tuple[str, str], int]:
    """Which fold each person of each data set is in: of one person all questions or none."""
    people: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for each in asked:
        here = people[each.dataset]
        here.setdefault(each.person, len(here) % FOLDS)
    return {
        (dataset, person): fold for dataset, here in people.items() for person, fold in here.items()
    }


def learn_adapter(asked: Sequence[TrainingQuestion], embedder: str = MINILM) -> Floats:
    """The embedder's map, of zeros if it has none."""
    if embedder not in ADAPTED:
        return np.zeros((len(asked[0].vector),) * 2, dtype=np.float32)
    counts = Counter(each.dataset for each in asked)
    pairs = [
        Pair(
            each.vector,
            each.openings.vectors,
            np.flatnonzero(np.isin(each.openings.keys, each.gold)),
            # The sets count alike, except for small ones, which would be overfitted.
            min(len(asked) / len(counts) / counts[each.dataset], 3.0),
        )
        for each in asked
        if np.isin(each.gold, each.openings.keys).any()
    ]
    return fit_adapter(pairs)


def learn_weights(
    examples: Sequence[Example], names: Sequence[str], *, leave_out: Sequence[str] = ()
) -> Learnt:
    counts = Counter(each.dataset for each in examples)
    columns = [
        p for p, name in enumerate(names) if name not in leave_out and name not in FIXED_WEIGHTS
    ]
    used = [names[place] for place in columns]
    lists = [
        List(
            each.values[:, columns],
            each.gold,
            np.array([kind in each.kinds for kind in KINDS], dtype=np.float32),
            1 / counts[each.dataset],
        )
        for each in examples
        if each.gold.any()
    ]
    never_negative = np.array([name.startswith(FOR) for name in used], dtype=np.bool_)
    weights, more = fit_weights(lists, never_negative)
    left = {name: weight for name, weight in FIXED_WEIGHTS.items() if name not in leave_out}
    return Learnt(
        _named(used, weights) | left,
        {kind: _named(used, added) for kind, added in zip(KINDS, more, strict=True)},
    )


def _named(names: Sequence[str], numbers: Floats) -> dict[str, float]:
    return {name: round(float(n), 4) for name, n in zip(names, numbers, strict=True)}


def figures(scored: Iterator[tuple[Example, Floats]]) -> dict[str, dict[str, float]]:
    """By data set, the metrics its table shows."""
    values: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for example, scores in scored:
        for name, value in _metrics(example, scores):
            values[example.dataset][name].append(value)
    return {
        dataset: {name: round(mean(each), 4) for name, each in by_metric.items()}
        for dataset, by_metric in values.items()
    }


def _metrics(example: Example, scores: Floats) -> Iterator[tuple[str, float]]:
    order = ranking(scores)
    turns = [example.turns[place] for place in order]
    sessions = list(dict.fromkeys(example.sessions[place] for place in order))
    question = example.question
    yield "session_recall_any@5", any_at(sessions, question.gold_sessions, 5)
    yield "session_recall_all@5", all_at(sessions, question.gold_sessions, 5)
    yield "session_recall@10", recall_at(sessions, question.gold_sessions, 10)
    if question.gold_turns:
        yield "turn_recall@10", recall_at(turns, question.gold_turns, 10)
        yield "turn_recall@20", recall_at(turns, question.gold_turns, 20)

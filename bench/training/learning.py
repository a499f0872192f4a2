"""Train the adapter and the recipes' weights on questions with known answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.metrics import all_at, any_at, mean, recall_at
from bench.training.examples import Example, Floats, TrainingQuestion
from bench.training.fitting import List, Pair, fit_adapter, fit_weights
from palace.recall import ranking
from palace.recall.recipes import FIXED_WEIGHTS

FOLDS = 5
# Kinds of question (see `Query.kinds`) that weigh features their own way.
KINDS = ("names", "times", "advice", "survey", "user", "assistant")
# What recall without vectors does without.
OF_MEANING = (
    "meaning.best",
    "meaning.first",
    "exchange.before",
    "exchange.after",
    "exchange.answer",
    "room.meaning",
    "agreement.exchange",
    "length.passages",
)


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


def learn_adapter(asked: Sequence[TrainingQuestion]) -> Floats:
    counts = Counter(each.dataset for each in asked)
    pairs = [
        Pair(
            each.vector,
            each.openings.vectors,
            np.flatnonzero(np.isin(each.openings.keys, each.gold)),
            # The sets count alike, but for small ones: they would be learnt by heart.
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
    weights, more = fit_weights(lists)
    left = {name: weight for name, weight in FIXED_WEIGHTS.items() if name not in leave_out}
    return Learnt(
        _named(used, weights) | left,
        {kind: _named(used, added) for kind, added in zip(KINDS, more, strict=True)},
    )


def _named(names: Sequence[str], numbers: Floats) -> dict[str, float]:
    return {name: round(float(n), 4) for name, n in zip(names, numbers, strict=True)}


def figures(
    scored: Iterator[tuple[Example, Floats]],
) -> dict[str, dict[str, float]]:
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
    order = ranking(scores, example.keys)
    turns = [example.turns[place] for place in order]
    sessions = list(dict.fromkeys(example.sessions[place] for place in order))
    question = example.question
    yield "session_recall_any@5", any_at(sessions, question.gold_sessions, 5)
    yield "session_recall_all@5", all_at(sessions, question.gold_sessions, 5)
    yield "session_recall@10", recall_at(sessions, question.gold_sessions, 10)
    if question.gold_turns:
        yield "turn_recall@10", recall_at(turns, question.gold_turns, 10)
        yield "turn_recall@20", recall_at(turns, question.gold_turns, 20)

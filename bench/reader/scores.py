"""How well the reader reads what was left out of its learning, and how sure its scores may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.reader.decoding import Chances, Reading, Span

# Shares of right values that are looked for among the surest.
PRECISIONS = (0.95, 0.9, 0.85, 0.8)
RECALLS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_RIDGE, _ROUNDS = 1.0, 30
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Judged:
    """A value that was read.

    Attributes:
        exact: A value of the same words, predicate and event is marked.
        close: One that shares words with it, of the same predicate and event.
    """

    span: Span
    exact: bool
    close: bool


@dataclass(frozen=True, slots=True)
class Confidence:
    """How a value's probabilities make its score, the share of such values that are right.

    Attributes:
        weights: Of their logarithms; then a constant.
    """

    weights: tuple[float, ...]

    def score(self, chances: Chances) -> float:
        *weights, constant = self.weights
        logs = (math.log(max(chance, _LEAST)) for chance in chances)
        summed = constant + sum(w * part for w, part in zip(weights, logs, strict=True))
        return 1 / (1 + math.exp(-summed))


def judge(read: Iterable[Span], right: Reading) -> list[Judged]:
    found = []
    for span in read:
        alike = [
            each
            for each in right.values
            if (each.predicate, each.event) == (span.predicate, span.event)
            and each.start < span.end
            and each.end > span.start
        ]
        exact = any((each.start, each.end) == (span.start, span.end) for each in alike)
        found.append(Judged(span, exact, bool(alike)))
    return found


def curve(judged: Sequence[Judged], marked: int, *, exact: bool) -> dict[str, object]:
    """Best F1 with its threshold, recall at some precisions and precision at some recalls.

    Args:
        marked: How many values there are to find.

    Returns:
        Nothing where no value was read.
    """
    if not judged:
        return {}
    surest = sorted(judged, key=lambda each: -each.span.score)
    right = np.cumsum([each.exact if exact else each.close for each in surest])
    precision = right / np.arange(1, len(surest) + 1)
    recall = right / marked
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-9)
    best = int(f1.argmax())
    return {
        "f1": round(float(f1[best]), 3),
        "precision": round(float(precision[best]), 3),
        "recall": round(float(recall[best]), 3),
        "threshold": round(surest[best].span.score, 3),
        "recall_at_precision": {
            str(least): round(float(recall[precision >= least].max(initial=0)), 3)
            for least in PRECISIONS
        },
        "precision_at_recall": {
            str(least): round(float(precision[recall >= least].max(initial=0)), 3)
            for least in RECALLS
        },
    }


def reliability(judged: Sequence[Judged], bins: int = 5) -> list[dict[str, float]]:
    """Mean score and share of right values, of those with scores in each range."""
    rows = []
    for number in range(bins):
        inside = [each for each in judged if number / bins <= each.span.score < (number + 1) / bins]
        if inside:
            right = sum(each.close for each in inside) / len(inside)
            mean = sum(each.span.score for each in inside) / len(inside)
            rows.append({"score": round(mean, 3), "right": round(right, 3), "values": len(inside)})
    return rows


def fit_confidence(found: Sequence[tuple[Judged, Chances]]) -> Confidence:
    """By logistic regression; where nothing was found, all scores are a half."""
    if not found:
        return Confidence((0.0, 0.0, 0.0, 0.0))
    logs = np.log(np.maximum(np.array([chances for _judged, chances in found]), _LEAST))
    values = np.concatenate([logs, np.ones((len(logs), 1))], axis=1)
    right = np.array([judged.close for judged, _chances in found], np.float64)
    weights = np.zeros(values.shape[1])
    ridge = np.diag([_RIDGE] * (values.shape[1] - 1) + [_LEAST])
    for _ in range(_ROUNDS):
        sure = 1 / (1 + np.exp(-values @ weights))
        slope = values.T @ (sure - right) + ridge @ weights
        bend = (values * (sure * (1 - sure))[:, None]).T @ values + ridge
        weights -= np.linalg.solve(bend, slope)
    return Confidence(tuple(round(float(each), 4) for each in weights))

"""A trial of the reader: learnt from some messages, measured on others.

It says how well the reader reads what was left out of its learning, and how sure its scores may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from bench.reader.decoding import Chances, Reading, Span, read_values
from bench.reader.examples import Marked, example
from bench.reader.training import LENGTHS, Floats, Read, encoder, fit, read, scores_of
from llm.embedding.build import read_model
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME

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


Found = list[tuple[Judged, Chances]]


class Trial:
    """
    Raises:
        EmbedderMisconfigured: MiniLM's weights are not there and cannot be fetched.
    """

    def __init__(self, learnt_from: Iterable[Marked], left_out: Iterable[Marked]) -> None:
        weights, tokenizer = read_model(LOCAL_MODELS[MODEL_NAME])
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LENGTHS[-1])
        self._base = encoder(weights)
        self._learnt_from, self._left_out = (
            read([example(each, self._tokenizer) for each in part], self._base)
            for part in (learnt_from, left_out)
        )

    def run(self, epochs: int, report: Callable[[int, float], None]) -> dict[str, Any]:
        """The figures of what was left out. How sure its scores are is fitted on the same messages.

        Args:
            report: Is called after each epoch, with its number and mean loss.
        """
        learnt = fit(self._learnt_from, base=self._base, epochs=epochs, report=report)
        found = _values(self._left_out, scores_of(learnt, self._left_out))
        sure = fit_confidence(found)
        judged = [
            replace(each, span=replace(each.span, score=sure.score(chances)))
            for each, chances in found
        ]
        marked = sum(len(each.example.marked.reading.values) for each in self._left_out)
        return {
            "messages": len(self._learnt_from),
            "left_out": len(self._left_out),
            "values": marked,
            "found": len(judged),
            "exact": curve(judged, marked, exact=True),
            "sharing_words": curve(judged, marked, exact=False),
            "confidence": sure.weights,
            "reliability": reliability(judged),
        }


def _values(examples: Sequence[Read], scores: Sequence[Floats]) -> Found:
    found: Found = []
    for each, rows in zip(examples, scores, strict=True):
        right = each.example.marked.reading
        _mentions, values = read_values(rows, each.example.places)
        judged = judge([span for span, _chances in values], right)
        found += zip(judged, [chances for _span, chances in values], strict=True)
    return found

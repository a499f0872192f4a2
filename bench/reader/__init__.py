"""A reader of facts that learns from statements. What it was worth: docs/adr/0023.

Here is how a tagger's scores of each token become what a message states: values, their subjects and
events. A tagger reads a window of a message, a few sentences, and scores for each token every label
of each task of `TASKS`. Values and mentions are runs of tokens: the first has the label 1, the
others 2. A value's predicate, event and subject are the means over its tokens. Then: how well the
reader reads what was left out of its learning, and how sure its scores may be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from language import facts

# It is so, or becomes so; it is so no longer; it is not so, and may never have been; it takes the
# place of what was said wrongly before.
Event = Literal["+", "-", "!", "="]


@dataclass(frozen=True, slots=True)
class Mention:
    """The person or thing that a value is about: characters `start` to `end` (exclusive).

    It may hold the value itself: "my sister Ana", a sibling named Ana.
    """

    start: int
    end: int
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Span:
    """A value: characters `start` to `end` (exclusive) of the message.

    Attributes:
        predicate: As `language.facts.PREDICATES` lists them, and a few more.
        subject: None: it is said of the author.
        void: The words say what happens and are no value: "we broke up".
        score: How sure the reader is of all of it, 0 to 1.
    """

    start: int
    end: int
    predicate: str
    event: Event = "+"
    subject: Mention | None = None
    void: bool = False
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The values in the order of the message, and all mentions, those without a value too."""

    values: tuple[Span, ...] = ()
    mentions: tuple[Mention, ...] = ()


# What is read beside the listed predicates.
_ALSO = "email instruction lacks located_in member_of nickname phone plays price rides score"
# In the order of the tagger's labels.
PREDICATES = tuple(sorted({*facts.PREDICATES, *_ALSO.split()}))
EVENTS: tuple[Event, ...] = ("+", "-", "!", "=")
# The subject of a value: the writer, the mention before it, the one after it, another one.
WRITER, BEFORE, AFTER, OTHER = range(4)
TASKS = {
    "value": 3,
    "mention": 3,
    "predicate": len(PREDICATES),
    "event": len(EVENTS),
    "subject": 4,
    "void": 2,
}
LABELS = sum(TASKS.values())
# A window's most characters, if its sentences are shorter; a tagger reads some 96 tokens.
WINDOW_CHARS = 300

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
# More than one value in two is less likely than none at all: the label "none" counts this much.
_NONE = 0.5

Floats = NDArray[np.float32]
Place = tuple[int, int]
# The probabilities that it is a value, of its predicate and of its event.
Chances = tuple[float, float, float]


def windows(text: str) -> Iterator[tuple[int, int]]:
    """Where the parts of a text that are read at once begin and end: whole sentences, in order."""
    start = end = 0
    for stop in [*(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]:
        if stop - start > WINDOW_CHARS and end > start:
            yield start, end
            start = end
        end = stop
    if end > start:
        yield start, end


def read_values(
    scores: Floats, places: Sequence[Place]
) -> tuple[tuple[Mention, ...], list[tuple[Span, Chances]]]:
    """The mentions of a window, and its values with what their scores are made of.

    Args:
        scores: (tokens, `LABELS`), before any softmax.
        places: Where the tokens' characters begin and end in it; equal: not of the text.
    """
    tasks = _probabilities(scores)
    real = np.array([end > start for start, end in places], dtype=bool)
    mentions = tuple(
        Mention(places[first][0], places[last][1], score)
        for first, last, score in _runs(tasks["mention"], real, none=1.0)
    )
    runs = _runs(tasks["value"], real, none=_NONE)
    return mentions, [_span(tasks, run, places, mentions) for run in runs]


def subject_label(value: tuple[int, int], subject: Mention | None, of: Sequence[Mention]) -> int:
    """The label of a value's subject among the mentions of its window."""
    if subject is None:
        return WRITER
    near = _near(value, of)
    return next((label for label in (BEFORE, AFTER) if near[label] == subject), OTHER)


def _near(value: tuple[int, int], mentions: Sequence[Mention]) -> tuple[Mention | None, ...]:
    """By label: the mention that the value's subject would be; none for the writer."""
    start, end = value
    before = [each for each in mentions if each.end <= start]
    after = [each for each in mentions if each.start >= end]
    around = [each for each in mentions if each.start < end and each.end > start]
    other = before[-2] if len(before) > 1 else next(iter(around), None)
    return None, before[-1] if before else None, after[0] if after else None, other


def _probabilities(scores: Floats) -> dict[str, Floats]:
    parts = np.split(scores, np.cumsum(list(TASKS.values()))[:-1], axis=1)
    return {task: _softmax(part) for task, part in zip(TASKS, parts, strict=True)}


def _softmax(scores: Floats) -> Floats:
    powers: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    sums: Floats = powers.sum(axis=1, keepdims=True)
    return powers / sums


def _runs(
    probabilities: Floats, real: NDArray[Any], *, none: float
) -> Iterator[tuple[int, int, float]]:
    """First and last token of each run, and the least probability that one of them is in any."""
    labels = (probabilities * np.array([none, 1, 1], np.float32)).argmax(axis=1)
    labels[~real] = 0
    first = -1
    for place, label in enumerate([*labels.tolist(), 0]):
        if first >= 0 and label != 2:
            yield first, place - 1, 1 - float(probabilities[first:place, 0].max())
            first = -1
        if first < 0 and label:
            first = place


def _span(
    tasks: Mapping[str, Floats],
    run: tuple[int, int, float],
    places: Sequence[Place],
    mentions: Sequence[Mention],
) -> tuple[Span, Chances]:
    first, last, value = run
    start, end = places[first][0], places[last][1]
    means = {
        task: tasks[task][first : last + 1].mean(axis=0)
        for task in ("predicate", "event", "subject", "void")
    }
    predicate, event = int(means["predicate"].argmax()), int(means["event"].argmax())
    near = _near((start, end), mentions)
    possible = means["subject"] * [
        label == WRITER or bool(near[label]) for label in range(len(near))
    ]
    span = Span(
        start,
        end,
        PREDICATES[predicate],
        EVENTS[event],
        near[int(possible.argmax())],
        void=bool(means["void"].argmax()),
    )
    return span, (value, float(means["predicate"][predicate]), float(means["event"][event]))


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

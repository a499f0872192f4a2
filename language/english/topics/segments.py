"""Where a conversation turns to something else: dips of likeness between neighbouring turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from language.extraction import Vectors
from language.transcripts import Turn

# No topic is shorter than this many turns.
LEAST_TURNS = 4
# Turns (or exchanges) on each side of a gap that are compared.
_REACH = 3
# How far likeness must fall below its surroundings, on both sides together, and below what level.
_DEPTH = 0.35
_LEVEL = 0.5


def segments(window: Sequence[Turn], vectors: Vectors | None) -> list[tuple[int, int]]:
    """First and last turn of each stretch about one thing; they cover the window in order."""
    last = len(window) - 1
    if vectors is None or len(window) < 2 * LEAST_TURNS:
        return [(0, last)]
    starts = _exchange_starts(window)
    units = _unit_vectors(window, vectors, starts)
    cuts = sorted(starts[gap] for gap in _gaps(units, starts, len(window)))
    firsts = [0, *cuts]
    return list(zip(firsts, [*(cut - 1 for cut in cuts), last], strict=True))


def _exchange_starts(window: Sequence[Turn]) -> list[int]:
    """A question and its answer stay together; among people each turn stands for itself."""
    if all(turn.role == "user" for turn in window):
        return list(range(len(window)))
    between_people = all(turn.speaker for turn in window)
    return [
        at for at, turn in enumerate(window) if at == 0 or between_people or turn.role == "user"
    ]


def _unit_vectors(window: Sequence[Turn], vectors: Vectors, starts: list[int]) -> Vectors:
    """One unit vector an exchange; what was asked counts for more than what was answered."""
    weights = np.array([_weight(turn) for turn in window], np.float32)[:, None]
    sums = np.add.reduceat(vectors * weights, starts, axis=0)
    return normalised(sums)


def _weight(turn: Turn) -> float:
    # A word or two of assent lies anywhere in the space.
    substance = min(len(turn.text), 80) / 80
    return (0.05 + substance) * (1.0 if turn.role == "user" or turn.speaker else 0.5)


def _gaps(units: Vectors, starts: list[int], turns: int) -> list[int]:
    """Indices of the units that begin a new topic, the deepest dips first."""
    likeness = _likeness(units)
    depths = _depths(likeness)
    chosen: list[int] = []
    edges = [0, turns]
    for at in np.argsort(-depths, kind="stable"):
        gap = int(at) + 1
        if depths[at] < _DEPTH or likeness[at] > _LEVEL:
            continue
        if all(abs(starts[gap] - edge) >= LEAST_TURNS for edge in edges):
            chosen.append(gap)
            edges.append(starts[gap])
    return chosen


def _likeness(units: Vectors) -> Vectors:
    """Cosine of the stretches before and after each gap; one less than there are units."""
    sums = np.vstack([np.zeros_like(units[:1]), np.cumsum(units, axis=0)])
    gaps = np.arange(1, len(units))
    before = normalised(sums[gaps] - sums[np.maximum(gaps - _REACH, 0)])
    after = normalised(sums[np.minimum(gaps + _REACH, len(units))] - sums[gaps])
    return np.asarray((before * after).sum(axis=1), np.float32)


def _depths(likeness: Vectors) -> Vectors:
    """How far each value lies below the nearest rise on either side, added up."""
    depths = np.zeros_like(likeness)
    for at, here in enumerate(likeness):
        depths[at] = sum(_climb(side, here) - here for side in (likeness[at::-1], likeness[at:]))
    return depths


def _climb(values: Vectors, start: float) -> float:
    top = start
    for value in values:
        if value < top:
            break
        top = value
    return float(top)


def normalised(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-9), np.float32)

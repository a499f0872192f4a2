"""Retrieval metrics. Pure."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

# Resamples of a bootstrap, and its seed: an interval is the same whenever it is computed.
RESAMPLES = 1000
SEED = 7


def recall_at(found: Sequence[str], gold: Collection[str], k: int) -> float:
    """Share of `gold` among the first `k` of `found`, 0 to 1; `gold` is not empty."""
    return len(set(found[:k]) & set(gold)) / len(set(gold))


def any_at(found: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 if any of `gold` is among the first `k`, else 0."""
    return float(bool(set(found[:k]) & set(gold)))


def all_at(found: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 if all of `gold` are among the first `k`, else 0."""
    return float(set(gold) <= set(found[:k]))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean (percentile method)."""
    draw = random.Random(SEED)  # noqa: S311 - resampling, no secret.
    means = sorted(mean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie; nearest rank."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

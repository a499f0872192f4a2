"""Retrieval metrics. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

# Resamples of a bootstrap, and its seed: an interval is the same whenever it is computed.
RESAMPLES = 2000
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


def ndcg_at(found: Sequence[str], gold: Collection[str], k: int) -> float:
    """Normalised discounted cumulative gain of the first `k`, 0 to 1, as LongMemEval computes it.

    The published code divides the gain at rank i by log2(i) from rank 2 on, so that rank 2 counts
    as much as rank 1; the textbook's form divides by log2(i + 1). Divided by what the best order
    would give, with all of `gold` first. `found` names nothing twice; `gold` is not empty.
    """
    wanted = set(gold)
    gains = [float(each in wanted) for each in found[:k]]
    return _discounted(gains) / _discounted([1.0] * min(len(wanted), k))


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / (math.log2(rank) or 1) for rank, gain in enumerate(gains, start=1))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean (percentile method)."""
    return interval_of_groups([values])


def interval_of_groups(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The same of the mean of the groups' means, each group resampled within itself."""
    draw = np.random.default_rng(SEED)
    means = np.mean([_resampled(np.asarray(group), draw) for group in groups], axis=0)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _resampled(values: NDArray[np.float64], draw: np.random.Generator) -> NDArray[np.float64]:
    """Means of samples as large as `values` itself."""
    means: NDArray[np.float64] = values[
        draw.integers(0, len(values), (RESAMPLES, len(values)), dtype=np.int32)
    ].mean(axis=1)
    return means


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie; nearest rank."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

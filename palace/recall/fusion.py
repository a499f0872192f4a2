"""Fusion: standardised signals into one score, by weights. Pure.

It fuses scores rather than ranks: reciprocal rank fusion discards the margins between candidates,
and scored lower on every set of questions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]


def fuse(features: Mapping[str, Scores], weights: Mapping[str, float]) -> dict[str, Scores]:
    """Weighted share of each feature in the score; features without a weight are left out.

    Args:
        features: By name, one standardised value per candidate.
        weights: By feature name.
    """
    return {
        name: np.asarray(features[name] * weight, dtype=np.float32)
        for name, weight in weights.items()
        if weight
    }


def total(shares: Mapping[str, Scores], number: int) -> Scores:
    """The score of each of `number` candidates: the sum of its shares."""
    return sum(shares.values(), np.zeros(number, dtype=np.float32))


def ranking(scores: Scores, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Indices of the candidates, best first; ties by ascending key."""
    return np.lexsort((keys, -scores))

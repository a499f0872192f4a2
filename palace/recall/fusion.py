"""Fusion: standardised signals into one score, by weights. Pure.

Scores are fused, not ranks: reciprocal rank fusion throws away how much better the best one is,
and lost on every set of questions it was tried on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]


def fuse(features: Mapping[str, Scores], weights: Mapping[str, float]) -> dict[str, Scores]:
    """The weighted share of each feature in the score; features without a weight are left out.

    Args:
        features: By name, one value a candidate, standardised so that values compare.
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
    """Places of the candidates, best first; of equals the one with the smaller key."""
    return np.lexsort((keys, -scores))

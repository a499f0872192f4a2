"""Agreement: sense and words that point to the same message are worth more than their sum."""

from __future__ import annotations

import numpy as np

from palace.recall.semantic import Scores


def agreement(first: Scores, second: Scores) -> Scores:
    """Of two standardised scores the product, where both are above the palace's mean; else 0."""
    return np.asarray(np.maximum(first, 0) * np.maximum(second, 0), dtype=np.float32)

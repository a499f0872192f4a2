"""Meaning: the cosine of the question with every passage of the palace.

The scan is exact. Within one palace that is fast and correct, where an index over all palaces
would return too few rows for a small one; it also gives the true mean and spread, against which
scores are standardised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector

from palace.models import EmbeddingSpace, Palace
from palace.recall.rows import fetch_rows, numbers

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

# Below this spread a palace is too small, or too much of one kind, to standardise by its own.
MIN_SPREAD = 0.05


@dataclass(frozen=True, slots=True)
class Meaning:
    """Cosines of a palace's drawers with the question, by ascending drawer key.

    Attributes:
        first: Of each drawer's first passage: what a long message opens with tells its subject.
        best: Of its closest passage.
        best_passage: That passage's ordinal.
        passages: How many passages it has.
        mean: Of `best` over the palace; likewise `spread`, the standard deviation.
    """

    drawers: Ids
    first: Scores
    best: Scores
    best_passage: npt.NDArray[np.int16]
    passages: npt.NDArray[np.int16]
    mean: float
    spread: float

    def standardised(self, scores: Scores) -> Scores:
        return np.asarray((scores - self.mean) / self.spread, dtype=np.float32)

    def at(self, drawers: Ids, column: npt.NDArray[np.generic]) -> Scores:
        """The column's values for these drawers; the palace's mean where one has no vector."""
        return look_up(self.drawers, column, drawers, missing=self.mean)


def look_up(
    keys: Ids, values: npt.NDArray[np.generic], wanted: Ids, *, missing: float = 0.0
) -> Scores:
    """`values` at `wanted`, where `keys` ascend; `missing` for those not among the keys."""
    if not len(keys):
        return np.full(len(wanted), missing, dtype=np.float32)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = np.where(keys[places] == wanted, values[places], missing)
    return found.astype(np.float32)


NOTHING = Meaning(
    drawers=np.empty(0, np.int64),
    first=np.empty(0, np.float32),
    best=np.empty(0, np.float32),
    best_passage=np.empty(0, np.int16),
    passages=np.empty(0, np.int16),
    mean=0.0,
    spread=1.0,
)


def by_meaning(palace: Palace, space: EmbeddingSpace, vector: Scores | None) -> Meaning:
    """Score every kept drawer of the palace; nothing where there is no vector to compare with."""
    if vector is None:
        return NOTHING
    # The vectors are of length 1: the inner product is the cosine, and cheaper.
    [(drawers, ordinals, cosines)] = fetch_rows(
        "SELECT substring(array_send(array_agg(drawer_id)) FROM 21),"
        " substring(array_send(array_agg(ordinal)) FROM 21),"
        " substring(array_send(array_agg((-(embedding <#> %s::halfvec))::float4)) FROM 21)"
        " FROM palace_passage"
        " WHERE palace_id = %s AND space_id = %s AND embedding IS NOT NULL"
        " AND drawer_id NOT IN"
        " (SELECT id FROM palace_drawer WHERE palace_id = %s AND trashed_at IS NOT NULL)",
        [HalfVector(vector).to_text(), palace.pk, space.pk, palace.pk],
    )
    if drawers is None:
        return NOTHING
    return _per_drawer(numbers(drawers, "i8"), numbers(ordinals, "i2"), numbers(cosines, "f4"))


def _per_drawer(drawers: Ids, ordinals: npt.NDArray[np.int16], cosines: Scores) -> Meaning:
    order = np.lexsort((ordinals, drawers))
    drawers, ordinals, cosines = drawers[order], ordinals[order], cosines[order]
    unique, starts, counts = np.unique(drawers, return_index=True, return_counts=True)
    best = np.maximum.reduceat(cosines, starts)
    # The place of each drawer's best passage: the first row of the drawer that reaches its best.
    is_best = cosines == np.repeat(best, counts)
    rows = np.where(is_best, np.arange(len(cosines)), len(cosines))
    best_rows = np.minimum.reduceat(rows, starts)
    return Meaning(
        drawers=unique,
        first=cosines[starts],
        best=best,
        best_passage=ordinals[best_rows],
        passages=counts.astype(np.int16),
        mean=float(best.mean()),
        spread=max(float(best.std()), MIN_SPREAD),
    )

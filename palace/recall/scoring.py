"""Scoring: all signals of all candidates in one score each, and which of them may be hits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from palace.recall.candidates import Candidates
from palace.recall.fusion import fuse, ranking, total
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.recipes import Recipe
from palace.recall.relevance import Relevance, relevant
from palace.recall.semantic import Meaning, Scores
from palace.recall.signals import SILENT, Tells, fall, features


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates in the order of their score, with why the last ones were cut.

    Attributes:
        telling: Of each, whether it tells anything.
        order: Places among the candidates, best first; likewise the two that were cut.
        too_far: Of those that have nothing to do with the question.
        left_out: Of those that whoever asks has before them.
        relevance: Whether anything here is close to the question, and by what figures.
    """

    candidates: Candidates
    shares: Mapping[str, Scores]
    scores: Scores
    telling: Tells
    order: list[int]
    too_far: list[int]
    left_out: list[int]
    relevance: Relevance

    def signals(self, place: int) -> dict[str, float]:
        """A candidate's shares, features of one signal added up: `room.words` is `room`."""
        signals: dict[str, float] = {}
        for name, values in self.shares.items():
            signal = name.partition(".")[0]
            signals[signal] = signals.get(signal, 0.0) + float(values[place])
        return signals


def score(
    query: Query,
    recipe: Recipe,
    candidates: Candidates,
    meaning: Meaning,
    words: Words,
    exclude_ids: Collection[int],
) -> Scored:
    """
    Args:
        exclude_ids: Keys of drawers that are no hits, however good.
    """
    values = features(query, candidates, meaning, words)
    telling = values[SILENT] == 0
    weights = recipe.weights_for(query.kinds)
    weight = weights.pop(SILENT, 0.0)
    shares = fuse(values, weights)
    scores = total(shares, len(candidates))
    if weight and not telling.all():
        shares[SILENT] = values[SILENT] * np.float32(weight * fall(scores, telling))
        scores = scores + shares[SILENT]
    known = np.isin(candidates.drawers, np.array(list(exclude_ids), dtype=np.int64))
    relevance = relevant(query, candidates, values, meaning, words, known, ~telling)
    taken = relevance.taken
    order = ranking(scores, candidates.drawers)
    order, left_out = order[~known[order]], order[known[order]]
    return Scored(
        candidates,
        shares,
        scores,
        telling=telling,
        order=order[taken[order]].tolist(),
        too_far=order[~taken[order]].tolist(),
        left_out=left_out.tolist(),
        relevance=relevance,
    )

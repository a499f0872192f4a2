"""Scoring: combines the signals of each candidate into one score, and ranks the candidates."""

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
from palace.recall.signals import UNINFORMATIVE, Mask, demotion, features


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates with scores, and the rejected ones by reason.

    Attributes:
        informative: Whether each candidate is informative.
        order: Indices of the possible hits, best first; `too_far` and `excluded` likewise.
        too_far: Indices of the irrelevant candidates.
        excluded: Indices of the candidates already in the prompt.
        relevance: The relevance decision with its figures.
    """

    candidates: Candidates
    shares: Mapping[str, Scores]
    scores: Scores
    informative: Mask
    order: list[int]
    too_far: list[int]
    excluded: list[int]
    relevance: Relevance

    def signals(self, place: int) -> dict[str, float]:
        """A candidate's contributions by signal: `room.words` and `room.meaning` add to `room`."""
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
    """Score and rank the candidates.

    Args:
        exclude_ids: Keys of drawers that must not be hits.
    """
    values = features(query, candidates, meaning, words)
    informative = values[UNINFORMATIVE] == 0
    weights = recipe.weights_for(query.kinds)
    weight = weights.pop(UNINFORMATIVE, 0.0)
    shares = fuse(values, weights)
    scores = total(shares, len(candidates))
    if weight and not informative.all():
        shares[UNINFORMATIVE] = values[UNINFORMATIVE] * np.float32(
            weight * demotion(scores, informative)
        )
        scores = scores + shares[UNINFORMATIVE]
    known = np.isin(candidates.drawers, np.array(list(exclude_ids), dtype=np.int64))
    relevance = relevant(query, candidates, values, meaning, words, known, ~informative)
    taken = relevance.taken
    order = ranking(scores, candidates.drawers)
    order, excluded = order[~known[order]], order[known[order]]
    return Scored(
        candidates,
        shares,
        scores,
        informative=informative,
        order=order[taken[order]].tolist(),
        too_far=order[~taken[order]].tolist(),
        excluded=excluded.tolist(),
        relevance=relevance,
    )

"""A message is understood by what surrounds it: the exchange it is part of, and its room."""

from __future__ import annotations

import numpy as np

from palace.recall.candidates import Candidates
from palace.recall.keyword import Words
from palace.recall.semantic import Meaning, Scores


def exchange_words(candidates: Candidates, words: Words) -> Scores:
    """BM25 of each drawer read together with the messages before and after it."""
    lengths = candidates.terms + candidates.before_terms + candidates.after_terms
    return words.of_groups([candidates.before, candidates.drawers, candidates.after], lengths)


def exchange_meaning(candidates: Candidates, meaning: Meaning) -> Scores:
    """The better cosine of the messages before and after; the palace's mean where none is."""
    return np.maximum(
        meaning.at(candidates.before, meaning.best), meaning.at(candidates.after, meaning.best)
    )


def room_best(candidates: Candidates, scores: Scores) -> Scores:
    """For each candidate the best score that any candidate of its room has."""
    rooms, places = np.unique(candidates.rooms, return_inverse=True)
    best = np.full(len(rooms), -np.inf, dtype=np.float32)
    np.maximum.at(best, places, scores)
    return np.asarray(best[places], dtype=np.float32)

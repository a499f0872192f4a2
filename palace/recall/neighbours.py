"""A message is understood by what surrounds it: the exchange it is part of, and its room."""

from __future__ import annotations

import numpy as np

from palace.recall.candidates import Candidates
from palace.recall.keyword import Words
from palace.recall.question_demotion import Tells
from palace.recall.semantic import Scores
from palace.storage.indexing.traits import Trait


def exchange_words(candidates: Candidates, words: Words) -> tuple[Scores, Scores]:
    """Of each drawer, read together with the messages before and after it, BM25 and coverage.

    Coverage is the share of the question, 0 to 1, that is in any of the three.
    """
    lengths = candidates.terms + candidates.before_terms + candidates.after_terms
    exchange = [candidates.before, candidates.drawers, candidates.after]
    return words.of_groups(exchange, lengths)


def answers(candidates: Candidates, before: Scores) -> Scores:
    """Of each that comes right after a question, how well that one fits; else 0.

    Args:
        before: How well the message before each fits.
    """
    after_question = (candidates.before_traits & Trait.ENDS_ASKING) > 0
    return np.where(after_question, before, np.float32(0))


def room_best(candidates: Candidates, scores: Scores, telling: Tells) -> Scores:
    """For each candidate the best score that any candidate of its room has which tells something.

    A room without one is as good as the palace is on average.
    """
    rooms, places = np.unique(candidates.rooms, return_inverse=True)
    best = np.full(len(rooms), -np.inf, dtype=np.float32)
    np.maximum.at(best, places[telling], scores[telling])
    best[np.isneginf(best)] = 0
    return np.asarray(best[places], dtype=np.float32)

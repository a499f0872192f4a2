"""Telling: which messages can answer at all. One that only asks is close to a question, and no
answer; nor is one that only quotes what is in the palace anyway."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from language.english.intent import Intent
from language.english.message_traits import TELLS_NOTHING, Trait
from palace.recall.candidates import Candidates
from palace.recall.keyword import Words
from palace.recall.semantic import Scores

Tells = npt.NDArray[np.bool_]

# The feature's name.
SILENT = "statement.silent"
# A question within a talk stands for what was said about it, unless it is the one asked here: from
# this share of the question's words on.
SAME_QUESTION = 0.6


def tells(intent: Intent, candidates: Candidates, words: Words) -> Tells:
    """Of each candidate; all do where the question is after what was asked."""
    if intent.asks_asked:
        return np.ones(len(candidates), dtype=np.bool_)
    silent = (candidates.traits & TELLS_NOTHING) > 0
    within_talk = np.flatnonzero((candidates.traits & Trait.TAKES_UP) > 0)
    if len(within_talk):
        drawers, lengths = candidates.drawers[within_talk], candidates.terms[within_talk]
        _, coverage = words.of_groups([drawers], lengths)
        silent[within_talk] = coverage >= SAME_QUESTION
    return np.asarray(~silent)


def fall(scores: Scores, telling: Tells) -> float:
    """How much lower what tells nothing must score to come after all that tells something."""
    if telling.all() or not telling.any():
        return 0.0
    return max(float(scores[~telling].max() - scores[telling].min()) + 1.0, 0.0)

"""Preference: lasting wishes and standing instructions surface where advice is asked for."""

from __future__ import annotations

import numpy as np

from language.english.intent import Intent
from palace.recall.candidates import Candidates
from palace.recall.semantic import Scores


def preference_scores(intent: Intent, candidates: Candidates) -> Scores:
    """How much each drawer states a wish or taste, when the question asks for advice; else 0."""
    if not intent.asks_advice:
        return np.zeros(len(candidates), dtype=np.float32)
    return candidates.preference

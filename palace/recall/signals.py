"""Signals: every candidate's features, standardised so that weights mean the same everywhere."""

from __future__ import annotations

import numpy as np

from palace.recall import neighbours
from palace.recall.candidates import Candidates
from palace.recall.keyword import Words
from palace.recall.preference import preference_scores
from palace.recall.query import Query
from palace.recall.semantic import Meaning, Scores
from palace.recall.speaker import named_speaker, users_own
from palace.recall.temporal import time_scores


def features(
    query: Query, candidates: Candidates, meaning: Meaning, words: Words
) -> dict[str, Scores]:
    """By name, one value a candidate.

    Meaning and words are in standard deviations above the palace's mean for this question; what
    surrounds a message is measured in the same units. The others run from 0 to 1.
    """
    best = meaning.standardised(meaning.at(candidates.drawers, meaning.best))
    message = words.standardised(words.at(candidates.drawers))
    return {
        "meaning.best": best,
        "meaning.first": meaning.standardised(meaning.at(candidates.drawers, meaning.first)),
        "words.message": message,
        "exchange.words": words.standardised(neighbours.exchange_words(candidates, words)),
        "exchange.meaning": meaning.standardised(neighbours.exchange_meaning(candidates, meaning)),
        "room.words": neighbours.room_best(candidates, message),
        "room.meaning": neighbours.room_best(candidates, best),
        "speaker.user": users_own(query.intent, candidates),
        "speaker.named": named_speaker(query.intent, candidates),
        "time.said": time_scores(candidates.said_at, query.time, query.now),
        "preference.stated": preference_scores(query.intent, candidates),
        "length.terms": np.log1p(candidates.terms),
        "length.passages": np.log1p(meaning.at(candidates.drawers, meaning.passages)),
    }

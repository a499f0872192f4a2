"""Signals: every candidate's features, standardised so that weights mean the same everywhere."""

from __future__ import annotations

import numpy as np

from language.english.dates.time_intent import time_scores
from palace.recall import neighbours
from palace.recall.agreement import agreement
from palace.recall.candidates import Candidates
from palace.recall.keyword import Words
from palace.recall.preference import preference_scores
from palace.recall.query import Query
from palace.recall.question_demotion import SILENT, Tells, tells
from palace.recall.semantic import Meaning, Scores
from palace.recall.speaker import named_speaker, users_own
from palace.recall.statement import LEARNT, has_trait


def features(
    query: Query, candidates: Candidates, meaning: Meaning, words: Words
) -> dict[str, Scores]:
    """By name, one value a candidate; before the dot stands the signal it is shown under.

    Meaning and words are in standard deviations above the palace's mean for this question; what
    surrounds a message is measured in the same units. The others run from 0 to 1, but lengths,
    which are logarithms.
    """
    telling = tells(query.intent, candidates, words)
    of_meaning = _of_meaning(candidates, meaning, telling)
    of_words = _of_words(candidates, words, telling)
    return {
        **of_meaning,
        **of_words,
        "agreement.exchange": agreement(of_meaning["meaning.best"], of_words["exchange.words"]),
        "words.quoted": candidates.quoted,
        "speaker.user": users_own(query.intent, candidates),
        "speaker.named": named_speaker(query.intent, candidates),
        "time.said": time_scores(candidates.said_at, query.time, query.now),
        "preference.stated": preference_scores(query.intent, candidates),
        "length.terms": np.log1p(candidates.terms),
        "length.passages": np.log1p(meaning.at(candidates.drawers, meaning.passages)),
        **{f"statement.{trait.name}".lower(): has_trait(candidates, trait) for trait in LEARNT},
        SILENT: (~telling).astype(np.float32),
    }


def _of_meaning(candidates: Candidates, meaning: Meaning, telling: Tells) -> dict[str, Scores]:
    best = meaning.standardised(meaning.at(candidates.drawers, meaning.best))
    before = meaning.standardised(meaning.at(candidates.before, meaning.best))
    return {
        "meaning.best": best,
        "meaning.first": meaning.standardised(meaning.at(candidates.drawers, meaning.first)),
        "exchange.before": before,
        "exchange.after": meaning.standardised(meaning.at(candidates.after, meaning.best)),
        "exchange.answer": neighbours.answers(candidates, before),
        "room.meaning": neighbours.room_best(candidates, best, telling),
    }


def _of_words(candidates: Candidates, words: Words, telling: Tells) -> dict[str, Scores]:
    message = words.standardised(words.at(candidates.drawers))
    exchange, coverage = neighbours.exchange_words(candidates, words)
    return {
        "words.message": message,
        "exchange.words": words.standardised(exchange),
        "exchange.coverage": coverage,
        "room.words": neighbours.room_best(candidates, message, telling),
    }

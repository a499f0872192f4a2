"""Relevance: which candidates may be hits. A question without a match must have no hits.

First a floor decides, once per recall, whether the palace can answer the question at all. Its
weights are data, fitted by `manage.py bench_floor`. Then each candidate is checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from language.english.questions import asks_for_all, is_personal, subject_of
from palace.recall.candidates import Candidates, Lookups
from palace.recall.keyword import Words
from palace.recall.query import E5, LEARNT_FOLDER, Query
from palace.recall.raw_sql import isin_sorted
from palace.recall.semantic import Meaning, Scores

FLOOR_PATH = LEARNT_FOLDER / "floor.json"
# In a larger palace the closest drawer is closer by chance, and more of the question's words occur
# by chance. These are subtracted for each e-fold above FEW drawers.
FEW = 60
COSINE_BY_CHANCE, DEVIATIONS_BY_CHANCE = 0.035, 0.45
WORDS_BY_CHANCE, KNOWN_BY_CHANCE = 0.02, 0.04
# Each embedder that recall was trained on has a model of its own. These are the two others: one for
# all other embedders, whose cosines are on unknown scales, and one for recall without vectors.
OTHER, BY_WORDS = "other-embedder", "by-words"
# The cosine of two unrelated texts: e5 was trained at a low temperature, which leaves all cosines
# between here and 1. They are stretched to the scale of the other embedder.
UNRELATED = {E5: 0.7}
# Above the floor, a drawer with this cosine or one shared word may be a hit. A stricter rule, based
# on words shared with neighbours, cost 1.2 points of turn@10 on BEAM.
MIN_COSINE = 0.15
# Minimum word coverage for a question without a subject.
MIN_COVERAGE = 0.4
# Minimum value of the time and preference features for a match.
MIN_SUITING = 0.5
# A preference of at least this strength is an instruction: "always answer in French".
INSTRUCTION = 0.94
# An earlier question with at least this cosine is the same question.
SAME_QUESTION = 0.7
# The recipe has no floor.
NO_FLOOR = "no floor"
# "What have we talked about?" has no subject: any drawer may be a hit.
ASKS_FOR_ALL = "asks for all"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Relevance:
    """Which candidates may be hits, and the figures behind the decision.

    Attributes:
        taken: The candidates that may be hits.
        log_odds: That the palace can answer the question; below `least` it is refused.
        exempt: Why the floor does not apply to this question; empty if it does.
    """

    taken: Mask
    closeness: Closeness
    log_odds: float
    least: float
    exempt: str

    @property
    def is_refused(self) -> bool:
        """Whether the floor rejects the question: no drawer is close to it."""
        return not self.exempt and self.log_odds < self.least


def relevant(
    query: Query,
    candidates: Candidates,
    values: Mapping[str, Scores],
    meaning: Meaning,
    words: Words,
    lookups: Lookups,
    excluded: Mask,
    uninformative: Mask,
    *,
    floor_shift: float | None = 0.0,
) -> Relevance:
    """Decide which candidates may be hits.

    Above the floor: drawers that share words with the question, are close in meaning, or are
    adjacent to such a drawer; drawers of the time it asks about; and stated preferences, if it
    asks for advice. Below the floor: standing instructions, if it asks for advice, and the same
    question asked before.

    Args:
        values: The candidates' features, by name.
        excluded: Candidates already in the prompt; like uninformative ones they do not count as
            evidence of an answer.
        uninformative: Candidates that only ask or quote.
        floor_shift: Added to the floor's threshold; None: there is no floor.
    """
    # The adapted vector ranks answers better; the unadapted one judges relevance better.
    cosines = _stretched(meaning.compare_unadapted(candidates.drawers), query.embedder)
    of_that_time = values["time.said"] >= MIN_SUITING
    covered = _coverage(query, words, lookups.counts[1], excluded | uninformative)
    near = _closeness(query, values, cosines, meaning.number, covered, excluded | uninformative)
    floor = floor_for(query, near)
    exempt = _exemption_reason(query, near, of_that_time)
    if floor_shift is None:
        exempt = exempt or NO_FLOOR
    least = floor.least + (floor_shift or 0.0)
    found = Relevance(of_that_time, near, floor.log_odds(near), least, exempt)
    wishes = values["preference.stated"]
    if found.is_refused:
        taken = (wishes >= INSTRUCTION) | (uninformative & (cosines >= SAME_QUESTION))
    else:
        close = _close(candidates, cosines, lookups.words)
        taken = close | of_that_time | (wishes >= MIN_SUITING) | (exempt == ASKS_FOR_ALL)
    return Relevance(taken, near, found.log_odds, found.least, exempt)


def _stretched(cosines: Scores, embedder: str) -> Scores:
    """Cosines on the scale of this module's thresholds; 0 stays 0, which is no cosine at all."""
    least = UNRELATED.get(embedder)
    if least is None:
        return cosines
    return np.asarray(np.maximum(cosines - least, 0) / (1 - least), dtype=np.float32)


def _close(candidates: Candidates, cosines: Scores, words: Scores) -> Mask:
    """Candidates close to the question, and those adjacent to a close one."""
    close = (words > 0) | (cosines >= MIN_COSINE)
    found = candidates.drawers[close]
    adjacent = isin_sorted(candidates.before, found) | isin_sorted(candidates.after, found)
    return np.asarray(close | adjacent, dtype=np.bool_)


def _exemption_reason(query: Query, near: Closeness, of_that_time: Mask) -> str:
    """Why the floor does not apply to a question; empty if it does."""
    if asks_for_all(query):
        return "time" if of_that_time.any() else ASKS_FOR_ALL
    if not subject_of(query):
        return "no subject" if _finds_something(near) or of_that_time.any() else ""
    asks_of_memory = query.intent.asks_user or query.intent.asks_assistant
    return "time" if asks_of_memory and of_that_time.any() else ""


def _finds_something(near: Closeness) -> bool:
    chance = COSINE_BY_CHANCE * log(max(near.number / FEW, 1))
    return near.cosine >= MIN_COSINE + chance or near.words >= MIN_COVERAGE


@dataclass(frozen=True, slots=True)
class Closeness:
    """How close a palace is to a question.

    Attributes:
        cosine: Of the unadapted question with the closest drawer.
        deviations: Of the closest drawer above the palace's mean, in standard deviations.
        words: The largest share of the question, 0 to 1, that one drawer's terms cover.
        known: The share of the question that the terms of all drawers cover.
        number: Number of drawers in the palace.
        personal: Whether the question is about the user or about earlier conversations.
        has_vectors: Whether cosines were computed.
    """

    cosine: float
    deviations: float
    words: float
    known: float
    number: int
    personal: bool
    has_vectors: bool

    def features(self) -> dict[str, float]:
        """The models' features, by name."""
        more = log(max(self.number / FEW, 1))
        return {
            "bias": 1.0,
            "cosine": self.cosine - COSINE_BY_CHANCE * more,
            "deviations": self.deviations - DEVIATIONS_BY_CHANCE * more,
            "words": self.words - WORDS_BY_CHANCE * more,
            "known": self.known - KNOWN_BY_CHANCE * more,
            "personal": float(self.personal),
        }


def _closeness(
    query: Query,
    values: Mapping[str, Scores],
    cosines: Scores,
    number: int,
    covered: tuple[float, float],
    excluded: Mask,
) -> Closeness:
    """
    Args:
        cosines: Of the candidates with the unadapted question; 0 without a vector.
        number: Of the drawers in the palace.
        covered: As `_coverage`.
    """
    others = ~excluded
    return Closeness(
        cosine=float(cosines[others].max(initial=0.0)),
        deviations=float(values["meaning.best"][others].max(initial=0.0)),
        words=covered[0],
        known=covered[1],
        number=number,
        personal=is_personal(query),
        has_vectors=bool(cosines.any()),
    )


def _coverage(query: Query, words: Words, counts: Scores, excluded: Mask) -> tuple[float, float]:
    """Largest coverage of the subject by one drawer, and by all drawers that are not excluded.

    Args:
        counts: Of the terms in each candidate, one row for each term.
    """
    subject = subject_of(query) or frozenset(query.terms)
    counted = zip(words.terms, counts > 0, strict=True)
    terms = [(term, has_it) for term, has_it in counted if term.name in subject]
    whole = sum(term.idf for term, _ in terms) + (len(subject) - len(terms)) * words.missing
    covered = np.zeros(len(excluded), dtype=np.float32)
    known = 0.0
    for term, has_it in terms:
        covered += term.idf * has_it
        # Other drawers than the excluded ones have it.
        if len(term.drawers) > np.count_nonzero(has_it & excluded):
            known += term.idf
    covered = covered[~excluded]
    return (float(covered.max(initial=0.0)) / whole, known / whole) if whole else (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Floor:
    """A logistic model of whether a palace can answer a question.

    Attributes:
        weights: By feature name.
        least: Recall returns nothing below these log-odds.
    """

    weights: Mapping[str, float]
    least: float

    def log_odds(self, closeness: Closeness) -> float:
        features = closeness.features()
        return sum(weight * features[name] for name, weight in self.weights.items())


def floor_for(query: Query, closeness: Closeness) -> Floor:
    if not closeness.has_vectors:
        return floor_named(BY_WORDS)
    return floor_named(query.embedder or OTHER)


@cache
def floor_named(name: str) -> Floor:
    model = load_floor_weights()["models"][name]
    return Floor(model["weights"], model["least"])


@cache
def load_floor_weights() -> dict[str, Any]:
    """Models written by `manage.py bench_floor --write`, with their training data."""
    found: dict[str, Any] = json.loads(FLOOR_PATH.read_text(encoding="utf-8"))
    return found

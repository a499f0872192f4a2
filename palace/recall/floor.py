"""Relevance floor: decides whether a palace can answer a question at all.

The decision is one per recall. Its weights are data, fitted by `manage.py bench_floor`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log
from typing import Any

from palace.recall.adapter import FOLDER
from palace.recall.query import Query

PATH = FOLDER / "floor.json"
# In a larger palace the closest drawer is closer by chance, and more of the question's words occur
# by chance. These are subtracted for each e-fold above FEW drawers.
FEW = 60
COSINE_BY_CHANCE, DEVIATIONS_BY_CHANCE = 0.035, 0.45
WORDS_BY_CHANCE, KNOWN_BY_CHANCE = 0.02, 0.04
# One model for the embedder that recall was trained on, one for all other embedders, whose cosines
# are on another scale, and one for recall without vectors.
LEARNT, OTHER, BY_WORDS = "learnt-embedder", "other-embedder", "by-words"


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
    return floor_named(LEARNT if query.is_adapted else OTHER)


@cache
def floor_named(name: str) -> Floor:
    model = load_weights()["models"][name]
    return Floor(model["weights"], model["least"])


@cache
def load_weights() -> dict[str, Any]:
    """Models written by `manage.py bench_floor --write`, with their training data."""
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found

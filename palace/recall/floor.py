"""The floor: how close a palace must come to a question before anything of it is recalled.

One decision for a whole recall. Its weights are kept as data; `manage.py bench_floor` fits them.
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
# The more drawers, the closer the closest one comes to any question by chance, the more of its
# words one drawer holds, the more of them are known at all: so much for each e-fold above a few.
FEW = 60
COSINE_BY_CHANCE, DEVIATIONS_BY_CHANCE = 0.035, 0.45
WORDS_BY_CHANCE, KNOWN_BY_CHANCE = 0.02, 0.04
# The models there are: for the embedder that recall's parameters were learnt with, for all others,
# whose cosines mean something else, and for questions or drawers without vectors.
LEARNT, OTHER, BY_WORDS = "learnt-embedder", "other-embedder", "by-words"


@dataclass(frozen=True, slots=True)
class Closeness:
    """How close a palace comes to a question.

    Attributes:
        cosine: Of the question, as it is, with the closest drawer.
        deviations: Of the closest drawer above the palace's mean, in standard deviations.
        words: The largest share of the question, 0 to 1, that one drawer's terms make up.
        known: The share of the question that any drawer's terms make up.
        number: How many drawers the palace has.
        personal: Whether the question is about whoever asks, or about what was said.
        has_vectors: Whether anything was compared by meaning.
    """

    cosine: float
    deviations: float
    words: float
    known: float
    number: int
    personal: bool
    has_vectors: bool

    def features(self) -> dict[str, float]:
        """What the models weigh, by name."""
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
        weights: Of the features, by name.
        least: The log-odds below which nothing is recalled.
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
    model = kept()["models"][name]
    return Floor(model["weights"], model["least"])


@cache
def kept() -> dict[str, Any]:
    """What `manage.py bench_floor --write` wrote: models, and what they were fitted on."""
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found

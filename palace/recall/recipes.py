"""Recipes: named configurations of recall, as data; and their signals, by names for people."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from language.errors import UnknownRecipe
from palace.recall.context_builder import TIERS
from palace.recall.entity_graph import HOPS
from palace.recall.query import LEARNT_FOLDER, MINILM

Weights = Mapping[str, float]
# The feature of messages that only ask or quote.
UNINFORMATIVE = "statement.silent"
# A signal's name, and what a large share of it says.
SIGNALS = {
    "meaning": ("Meaning", "its sense is close to the question’s"),
    "words": ("Words", "it shares rare words with the question"),
    "exchange": ("Exchange", "the messages just before and after it fit too"),
    "agreement": ("Agreement", "what it changes that sense and words both point to it"),
    "room": ("Room", "its whole conversation is about this"),
    "speaker": ("Speaker", "the one who said it is the one asked about"),
    "time": ("Time", "it was said when the question points to"),
    "preference": ("Preference", "it states a lasting wish or taste"),
    "statement": ("Statement", "it says the kind of thing that such a question wants"),
    "length": ("Length", "it has enough words to say something"),
}
REST = "other"
# A smaller rest is a rounding error of the stored shares.
SMALLEST_REST = 0.005


@dataclass(frozen=True, slots=True)
class Recipe:
    """
    Attributes:
        weights: By feature (see `scoring.py`); a missing feature has weight 0. Those of the default
            embedder; `fitted_to` has others.
        more: Added to the weights, by kind of question (see `Query.kinds`).
        factors: Multiply the weights of signals, or of single features; 0 takes one out.
        by_meaning: Whether the question is embedded and compared with the passages.
        by_keywords: Whether drawers are found by shared words.
        by_time: Whether the times that the question names are read.
        by_preference: Whether it is read as asking for advice, which brings stated preferences.
        by_graph: Whether facts are closer if they are about what the question names.
        hops: How many facts the graph follows from there.
        from_hits: Whether it also starts from what the best hits mention.
        floor: Whether a question that nothing is close to is refused.
        floor_shift: Added to the floor's threshold, in log-odds; above 0 it refuses more.
        best_each: Number of candidates from each of the semantic and keyword rankings.
        rewrite: Whether a model rewrites the question, if one is available.
        rewritten: Maximum number of questions that it writes.
        rerank: Whether a model reorders the best hits, if one is available; None: the owner's
            setting.
        reranked: Number of hits that it compares; it moves `promoted` of them to the front.
        facts: Maximum number of facts in the context block, if facts are requested.
        shares: Budget shares of the context block's tiers: facts, hits and session.
        opening: Number of latest drawers for an opening message without hits.
        stages: What the caller gave to make it, for the trace; empty for a named recipe.
    """

    name: str
    weights: Weights
    more: Mapping[str, Weights] = field(default_factory=dict)
    factors: Weights = field(default_factory=dict)
    by_meaning: bool = True
    by_keywords: bool = True
    by_time: bool = True
    by_preference: bool = True
    by_graph: bool = True
    hops: int = HOPS
    from_hits: bool = False
    floor: bool = True
    floor_shift: float = 0.0
    best_each: int = 200
    rewrite: bool = False
    rewritten: int = 2
    rerank: bool | None = None
    reranked: int = 20
    promoted: int = 5
    facts: int = 8
    shares: Weights = field(default_factory=lambda: TIERS)
    opening: int = 5
    stages: Sequence[Mapping[str, Any]] = ()

    def weights_for(self, kinds: Collection[str]) -> dict[str, float]:
        """Feature weights for a question of these kinds."""
        added: dict[str, float] = {}
        for kind in kinds:
            for name, more in self.more.get(kind, {}).items():
                added[name] = added.get(name, 0.0) + more
        weights = {name: weight + added.get(name, 0.0) for name, weight in self.weights.items()}
        if not self.factors:
            return weights
        return {name: weight * self._factor(name) for name, weight in weights.items()}

    def _factor(self, feature: str) -> float:
        if feature == UNINFORMATIVE:
            return 1.0
        return self.factors.get(feature, self.factors.get(feature.partition(".")[0], 1.0))

    def fitted_to(self, embedder: str) -> Recipe:
        """With the weights trained on that embedder; unchanged if there are none."""
        if not self.by_meaning or embedder in ("", MINILM):
            return self
        numbers = trained_weights(embedder)
        return replace(self, weights=numbers["weights"] | FIXED_WEIGHTS, more=numbers["more"])

    def without(self, signals: Collection[str]) -> Recipe:
        """The recipe without some features, or signals with all their features, for ablation.

        The other weights are unchanged: they are not refitted.
        """
        weights = {
            name: weight
            for name, weight in self.weights.items()
            if name not in signals and name.partition(".")[0] not in signals
        }
        return replace(self, weights=weights)


@cache
def trained_weights(name: str) -> dict[str, Any]:
    """Weights written by `manage.py train_recall`, with their training data."""
    found: dict[str, Any] = json.loads((LEARNT_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


# Weights that training cannot learn: its questions hardly ever quote, and its palaces contain no
# earlier questions. Quoted words are wanted literally; -1 ranks uninformative drawers just below
# all informative ones.
FIXED_WEIGHTS = {"words.quoted": 1.5, UNINFORMATIVE: -1.0}


def _trained_recipe(recipe: str, **choices: Any) -> Recipe:
    numbers = trained_weights("by-words" if choices.get("by_meaning") is False else MINILM)
    return Recipe(recipe, numbers["weights"] | FIXED_WEIGHTS, numbers["more"], **choices)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        _trained_recipe("default"),
        # A third of the candidates: faster, and enough for questions with a single answer.
        _trained_recipe("fast", best_each=60),
        # The question is not embedded, so no model is called.
        _trained_recipe("keyword", by_meaning=False),
        _trained_recipe("rerank", rerank=True),
        # Facts fill most of the block: for agents that need the current state rather than the
        # conversations it came from.
        _trained_recipe(
            "facts-first", facts=20, shares={"facts": 0.6, "hits": 0.3, "session": 0.1}
        ),
    )
}


def recipe_chosen(stored: str) -> Recipe:
    """The recipe stored in the settings; the default if it no longer exists."""
    return RECIPES.get(stored, RECIPES["default"])


def recipe_named(name: str) -> Recipe:
    """
    Raises:
        UnknownRecipe: no recipe has that name; the message lists the names.
    """
    try:
        return RECIPES[name]
    except KeyError:
        raise UnknownRecipe(
            f"There is no recipe {name!r}; choose one of {', '.join(RECIPES)}."
        ) from None


def label_of(signal: str) -> str:
    return SIGNALS[signal][0] if signal in SIGNALS else signal.replace("_", " ").capitalize()


def all_shares(score: float, signals: Mapping[str, float]) -> dict[str, float]:
    """The signals' shares, and the rest if there is one: together they are the score."""
    rest = score - sum(signals.values())
    return {**signals, REST: round(rest, 4)} if abs(rest) >= SMALLEST_REST else dict(signals)

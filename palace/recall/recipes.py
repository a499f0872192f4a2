"""Recipes: named configurations of recall, as data."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from palace.errors import UnknownRecipe
from palace.recall.adapter import FOLDER
from palace.recall.context_builder import TIERS
from palace.recall.signals import SILENT

Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Recipe:
    """
    Attributes:
        weights: Of each feature (see `signals.py`) in the score; one left out counts nothing.
        more: By kind of question (see `Query.kinds`), what is added to the weights.
        by_meaning: Whether the question is embedded and compared with the passages.
        best_each: How many of the best by each of meaning and words are looked at.
        rerank: Whether a model puts the best in order, where one can be asked.
        facts: How many known facts may stand before the drawers, where they are asked for.
        shares: Of the context block's budget, for facts, drawers and the latest turns.
        opening: How many of the latest drawers open a conversation that nothing is found for.
    """

    name: str
    weights: Weights
    more: Mapping[str, Weights] = field(default_factory=dict)
    by_meaning: bool = True
    best_each: int = 200
    rerank: bool = False
    facts: int = 8
    shares: Weights = field(default_factory=lambda: TIERS)
    opening: int = 5

    def weights_for(self, kinds: Collection[str]) -> dict[str, float]:
        """The weights of features for a question of these kinds."""
        added = [self.more[kind] for kind in kinds if kind in self.more]
        return {
            name: weight + sum(more.get(name, 0.0) for more in added)
            for name, weight in self.weights.items()
        }

    def without(self, signals: Collection[str]) -> Recipe:
        """The same without features, or signals with all of theirs; for measuring what they give.

        Weights are those learnt with them: what is left is not fitted anew.
        """
        left = {
            name: weight
            for name, weight in self.weights.items()
            if name not in signals and name.partition(".")[0] not in signals
        }
        return replace(self, weights=left)


@cache
def learnt(name: str) -> dict[str, Any]:
    """What `manage.py train_recall` wrote: weights, and what they were learnt from."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


# Who puts words between quotation marks wants these words. The questions that weights are learnt
# from hardly ever do, so that nothing can be learnt of it. Nor do they meet earlier questions,
# which no closeness makes an answer: -1 puts them just behind all that tells something.
SET = {"words.quoted": 1.5, SILENT: -1.0}


def _learnt(recipe: str, **choices: Any) -> Recipe:
    numbers = learnt("by-words" if choices.get("by_meaning") is False else "default")
    return Recipe(recipe, numbers["weights"] | SET, numbers["more"], **choices)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        _learnt("default"),
        # A third of the candidates: quicker, and enough where a question has one answer.
        _learnt("fast", best_each=60),
        # No embedding of the question, so no model at all.
        _learnt("keyword", by_meaning=False),
        _learnt("rerank", rerank=True),
        # What is known fills most of the block: for agents that need the state of things rather
        # than how it was said.
        _learnt("facts-first", facts=20, shares={"facts": 0.6, "hits": 0.3, "session": 0.1}),
    )
}


def recipe_chosen(stored: str) -> Recipe:
    """What somebody chose in the settings; the default where there is no such recipe any more."""
    return RECIPES.get(stored, RECIPES["default"])


def recipe_named(name: str) -> Recipe:
    """
    Raises:
        UnknownRecipe: it lists those there are.
    """
    try:
        return RECIPES[name]
    except KeyError:
        raise UnknownRecipe(
            f"There is no recipe {name!r}; choose one of {', '.join(RECIPES)}."
        ) from None

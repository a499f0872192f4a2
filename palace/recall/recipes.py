"""Recipes: named configurations of recall, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from palace.errors import UnknownRecipe


@dataclass(frozen=True, slots=True)
class Recipe:
    """
    Attributes:
        weights: Of each feature (see `signals.py`) in the score; one left out counts nothing.
        by_meaning: Whether the question is embedded and compared with every passage.
    """

    name: str
    weights: Mapping[str, float]
    by_meaning: bool = True


# The part of a feature's name before the dot is the signal it is shown under. The proportions come
# from a linear listwise fit over questions of three kinds (people's talk, chats with an assistant,
# long technical chats), one weighting for all of them.
_DEFAULT = {
    "meaning.best": 0.18,
    "meaning.first": 0.58,
    "words.message": 0.19,
    "exchange.words": 0.14,
    "exchange.meaning": 0.35,
    "room.words": 0.28,
    "room.meaning": 0.05,
    "speaker.user": 1.7,
    "speaker.named": 1.6,
    "time.said": 2.6,
    "preference.stated": 2.0,
    "length.terms": 0.44,
    "length.passages": -1.44,
}

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("default", _DEFAULT),
        Recipe(
            "keyword",
            {name: w for name, w in _DEFAULT.items() if "meaning" not in name},
            by_meaning=False,
        ),
    )
}


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

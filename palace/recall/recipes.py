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
    "meaning.best": 0.12,
    "meaning.first": 0.52,
    "words.message": 0.18,
    "exchange.words": 0.17,
    "exchange.meaning": 0.47,
    "room.words": 0.3,
    "room.meaning": 0.15,
    "speaker.user": 1.4,
    "time.said": 2.7,
    "preference.stated": 1.0,
    "length.terms": 0.5,
    "length.passages": -1.6,
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

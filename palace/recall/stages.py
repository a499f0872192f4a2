"""Stages: a recipe taken apart. Each is on or off and has tunables; callers give a list of them.

The stages always run in the same order. What a list leaves out is as in the recipe `default`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from language.errors import BadRecipe
from palace.recall.recipes import RECIPES, SIGNALS, Recipe, recipe_named

# The name of a caller's list in traces.
INLINE = "inline"
# What a caller may give as a recipe: a name, or a list of stages.
RecipeGiven = str | Sequence[Mapping[str, Any]]
# Stages by the signal whose weight they multiply; those of the other signals are of `fusion`.
_OWN_SIGNAL = {
    "semantic": "meaning",
    "keyword": "words",
    "temporal": "time",
    "preference": "preference",
}
# Features of shared words that belong to other signals: without the stage they go as well.
_OF_WORDS = ("words", "agreement", "exchange.words", "exchange.coverage", "room.words")
MOST_WEIGHT = 5.0
_SHARES = {"facts_share": "facts", "hits_share": "hits", "session_share": "session"}
_MOST_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class Tunable:
    """
    Attributes:
        field: Of `Recipe`; empty for a weight or a share.
        least: Also says the kind: a truth value, a whole number or any number.
    """

    name: str
    help: str
    least: float | bool
    most: float | bool
    field: str = ""

    def read(self, stage: str, value: object) -> Any:
        """
        Raises:
            BadRecipe: the value is of another kind, or out of range.
        """
        # A truth value is a whole number too, and a whole number is a number.
        kinds = (int, float) if type(self.least) is float else (type(self.least),)
        if type(value) not in kinds or not self.least <= value <= self.most:  # type: ignore[operator]
            raise BadRecipe(
                f"In the stage `{stage}`, `{self.name}` must be {self.allowed}, "
                f"not {_shown(value)}."
            )
        return value

    @property
    def allowed(self) -> str:
        if type(self.least) is bool:
            return "true or false"
        kind = "a number" if type(self.least) is float else "a whole number"
        return f"{kind} from {self.least:g} to {self.most:g}"


@dataclass(frozen=True, slots=True)
class Stage:
    """
    Attributes:
        switch: The field of `Recipe` that turns it on; empty for a stage that is always on.
    """

    name: str
    help: str
    switch: str = ""
    tunables: tuple[Tunable, ...] = ()


def _weight(signal: str, name: str = "weight") -> Tunable:
    label = SIGNALS[signal][0].lower()
    return Tunable(name, f"Multiplies the weight of the signal {label}.", 0.0, MOST_WEIGHT)


STAGES = {
    stage.name: stage
    for stage in (
        Stage(
            "rewrite",
            "A model rewrites the question; each of its questions is searched too.",
            "rewrite",
            (Tunable("questions", "How many questions it may write.", 1, 3, "rewritten"),),
        ),
        Stage(
            "semantic",
            "Messages are found by meaning.",
            "by_meaning",
            (_weight("meaning"),),
        ),
        Stage("keyword", "Messages are found by shared words.", "by_keywords", (_weight("words"),)),
        Stage(
            "temporal",
            "Times that the question names are read.",
            "by_time",
            (_weight("time"),),
        ),
        Stage(
            "preference",
            "Where advice is asked for, stated wishes come first.",
            "by_preference",
            (_weight("preference"),),
        ),
        Stage(
            "graph",
            "Facts are closer if they are about what the question names, or connected with it.",
            "by_graph",
            (
                Tunable("hops", "How many facts it follows from there.", 0, 5, "hops"),
                Tunable(
                    "from_hits",
                    "It also starts from what the best hits mention.",
                    least=False,
                    most=True,
                    field="from_hits",
                ),
            ),
        ),
        Stage(
            "fusion",
            "All signals are weighed into one score.",
            tunables=(
                Tunable(
                    "candidates", "The best of each ranking that are scored.", 10, 1000, "best_each"
                ),
                *(_weight(name, name) for name in SIGNALS if name not in _OWN_SIGNAL.values()),
            ),
        ),
        Stage(
            "floor",
            "A question that nothing is close to brings nothing.",
            "floor",
            (
                Tunable(
                    "shift",
                    "Added to the threshold, in log-odds: above 0 it refuses more.",
                    -20.0,
                    20.0,
                    "floor_shift",
                ),
            ),
        ),
        Stage(
            "rerank",
            "A model reorders the best hits. Left out, it is as your settings say.",
            "rerank",
            (
                Tunable("hits", "How many hits it compares.", 2, 50, "reranked"),
                Tunable("promoted", "How many of them it moves to the front.", 1, 50, "promoted"),
            ),
        ),
        Stage(
            "packing",
            "Facts, hits and the session's latest turns share the budget of tokens.",
            tunables=(
                Tunable("facts", "The most facts.", 0, 50, "facts"),
                Tunable(
                    "opening", "The latest messages for an opening like “hi”.", 0, 50, "opening"
                ),
                *(
                    Tunable(name, f"The share of {part}; with the other two at most 1.", 0.0, 1.0)
                    for name, part in _SHARES.items()
                ),
            ),
        ),
    )
}


def recipe_given(given: RecipeGiven) -> Recipe:
    """
    Raises:
        UnknownRecipe: no recipe has that name.
        BadRecipe: the list of stages is invalid.
    """
    return recipe_named(given) if isinstance(given, str) else recipe_of(given)


def recipe_of(stages: Sequence[Mapping[str, Any]]) -> Recipe:
    """The recipe that a list of stages describes.

    Raises:
        BadRecipe: a stage or tunable is unknown, repeated or out of range, or nothing is searched.
    """
    read = dict[str, Mapping[str, Any]]()
    for each in stages:
        stage = _stage_in(each)
        if stage.name in read:
            raise BadRecipe(f"The stage `{stage.name}` is there twice; give it once.")
        read[stage.name] = dict(_values(stage, each))
    recipe = _with_switches(RECIPES["default"], read)
    tuned = {
        tunable.field: read[name][tunable.name]
        for name in read
        for tunable in STAGES[name].tunables
        if tunable.field and tunable.name in read[name]
    }
    return replace(
        recipe,
        **tuned,
        name=INLINE,
        shares=_shares(recipe, read.get("packing", {})),
        factors=_factors(recipe, read),
        stages=[dict(each) for each in stages],
    )


def stages_of(recipe: Recipe) -> list[dict[str, Any]]:
    """A recipe as the list of all its stages; one that the owner's settings decide has no `on`."""
    described = []
    for stage in STAGES.values():
        row: dict[str, Any] = {"stage": stage.name}
        if stage.switch and (is_on := getattr(recipe, stage.switch)) is not None:
            row["on"] = is_on
        row |= {tunable.name: _value(recipe, stage, tunable) for tunable in stage.tunables}
        described.append(row)
    return described


def _value(recipe: Recipe, stage: Stage, tunable: Tunable) -> Any:
    if tunable.field:
        return getattr(recipe, tunable.field)
    if tunable.name in _SHARES:
        return recipe.shares[_SHARES[tunable.name]]
    return recipe.factors.get(_OWN_SIGNAL.get(stage.name, tunable.name), 1.0)


def _stage_in(each: object) -> Stage:
    if not isinstance(each, Mapping):
        raise BadRecipe(f'A stage is an object such as {{"stage": "graph"}}, not {_shown(each)}.')
    name = each.get("stage")
    if not isinstance(name, str) or name not in STAGES:
        raise BadRecipe(f"There is no stage {_shown(name)}; choose from {_listed(STAGES)}.")
    return STAGES[name]


def _values(stage: Stage, each: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The switch and the tunables of a stage, as given."""
    tunables = {tunable.name: tunable for tunable in stage.tunables}
    for name, value in each.items():
        if name == "on":
            yield name, _switch(stage, value)
        elif name in tunables:
            yield name, tunables[name].read(stage.name, value)
        elif name != "stage":
            allowed = _listed(["on", *tunables])
            raise BadRecipe(f"The stage `{stage.name}` has no {_shown(name)}; it has {allowed}.")


def _switch(stage: Stage, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadRecipe(f"In the stage `{stage.name}`, `on` must be true or false.")
    if not (value or stage.switch):
        raise BadRecipe(f"The stage `{stage.name}` cannot be off; leave out its `on`.")
    return value


def _with_switches(recipe: Recipe, read: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """Stages that are named are on, unless they say otherwise."""
    switches = {
        STAGES[name].switch: values.get("on", True)
        for name, values in read.items()
        if STAGES[name].switch
    }
    if not (switches.get("by_meaning", True) or switches.get("by_keywords", True)):
        raise BadRecipe("Nothing is searched if both `semantic` and `keyword` are off.")
    if not switches.get("by_meaning", True):
        by_words = RECIPES["keyword"]
        recipe = replace(recipe, weights=by_words.weights, more=by_words.more)
    return replace(recipe, **switches)


def _factors(recipe: Recipe, read: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """By signal or feature, what its weight is multiplied by."""
    factors: dict[str, float] = {}
    for name, values in read.items():
        for tunable in STAGES[name].tunables:
            if not tunable.field and tunable.name not in _SHARES and tunable.name in values:
                factors[_OWN_SIGNAL.get(name, tunable.name)] = float(values[tunable.name])
    if not recipe.by_keywords:
        factors |= dict.fromkeys(_OF_WORDS, 0.0)
    return factors


def _shares(recipe: Recipe, packing: Mapping[str, Any]) -> dict[str, float]:
    given = {part: float(packing[name]) for name, part in _SHARES.items() if name in packing}
    shares = {**recipe.shares, **given}
    if sum(shares.values()) > 1.001:
        raise BadRecipe(
            "In the stage `packing`, the shares are more than 1 together: "
            + ", ".join(f"{part} {share:g}" for part, share in shares.items())
            + ". Give all three."
        )
    return shares


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN_CHARS else f"{text[:_MOST_SHOWN_CHARS]}…"

"""Fit the reader of facts: the upper half of MiniLM's encoder, and a head that labels tokens.

The lower layers stay as they are, so their states are computed once. To these is added how each
token is written, as the tokenizer knows no capitals; the upper layers are tuned. JAX differentiates
and compiles; it is needed only here. AdamW with a fixed seed and order: the same statements give
the same reader on the same machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bench.reader import (
    LABELS,
    TASKS,
    Chances,
    Judged,
    curve,
    fit_confidence,
    judge,
    read_values,
    reliability,
)
from bench.reader.examples import CASES, Example, Marked, example
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME
from llm.embedding.model_build import read_model

SEED = 7
INNER = 256
WIDTH, HEADS, LAYERS = 384, 12, 6
KEPT_LAYERS = 3
EPSILON = 1e-12
EPOCHS = 10
RATE_OF_LAYERS, RATE_OF_HEAD = 3e-4, 1e-3
DROPOUT_OF_INPUT, DROPOUT, DROPOUT_OF_HEAD = 0.05, 0.1, 0.2
# Tokens of a text, padded to one of these: each is compiled once.
LENGTHS = (24, 40, 64, 96)
BATCH_TOKENS = 560
# How much each task's loss counts; those of values are sums over the tokens of values.
TASK_WEIGHTS = {
    "value": 1.0,
    "mention": 0.5,
    "predicate": 1.0,
    "event": 0.7,
    "subject": 0.4,
    "void": 0.2,
}
TOKENS_OF_VALUES = 60.0

PRODUCTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
}
NORMS = {"first": "attention.output.LayerNorm", "second": "output.LayerNorm"}

Tree = Any
Floats = NDArray[np.float32]
Found = list[tuple[Judged, Chances]]


def encoder(weights: Mapping[str, Any]) -> Tree:
    """MiniLM's weights as the functions below take them.

    Args:
        weights: By the names that BERT gives them.
    """
    table = "embeddings.{}_embeddings.weight".format
    segment = weights[table("token_type")][0]
    return {
        "words": jnp.asarray(weights[table("word")]),
        "places": jnp.asarray(weights[table("position")] + segment),
        "norm": _norm_of(weights, "embeddings.LayerNorm"),
        "layers": [_layer_of(weights, f"encoder.layer.{number}.") for number in range(LAYERS)],
    }


def _layer_of(weights: Mapping[str, Any], prefix: str) -> Tree:
    products = {
        name: {
            "matrix": jnp.asarray(weights[f"{prefix}{part}.weight"].T),
            "bias": jnp.asarray(weights[f"{prefix}{part}.bias"]),
        }
        for name, part in PRODUCTS.items()
    }
    return products | {name: _norm_of(weights, prefix + part) for name, part in NORMS.items()}


def _norm_of(weights: Mapping[str, Any], name: str) -> Tree:
    return {kind: jnp.asarray(weights[f"{name}.{kind}"]) for kind in ("weight", "bias")}


def beginning(base: Tree) -> Tree:
    """What is learnt, before it is: MiniLM's upper layers, and a head that knows nothing."""
    draw = np.random.default_rng(SEED)

    def random(rows: int, columns: int, size: float) -> Floats:
        return np.asarray(draw.normal(scale=size, size=(rows, columns)), np.float32)

    return {
        "layers": jax.tree.map(jnp.copy, base["layers"][KEPT_LAYERS:]),
        "cases": jnp.zeros((len(CASES), WIDTH)),
        "head": {
            "inner": jnp.asarray(random(WIDTH, INNER, WIDTH**-0.5)),
            "inner_bias": jnp.zeros(INNER),
            "labels": jnp.asarray(random(INNER, LABELS, 0.02)),
            "labels_bias": jnp.zeros(LABELS),
        },
    }


class _Dropout:
    def __init__(self, key: Any) -> None:
        self._key = key

    def __call__(self, values: Any, rate: float) -> Any:
        if self._key is None:
            return values
        self._key, key = jax.random.split(self._key)
        return values * jax.random.bernoulli(key, 1 - rate, values.shape) / (1 - rate)


def lower_states(base: Tree, batch: Tree) -> Any:
    """(texts, tokens, `WIDTH`): what the layers that stay as they are make of the tokens."""
    count = batch["ids"].shape[1]
    states = _norm(base["words"][batch["ids"]] + base["places"][:count], base["norm"])
    for layer in base["layers"][:KEPT_LAYERS]:
        states = _layer(layer, states, batch["mask"])
    return states


def scores(learnt: Tree, batch: Tree, key: Any = None) -> Any:
    """(texts, tokens, `LABELS`), before any softmax."""
    drop = _Dropout(key)
    states = batch["states"].astype(jnp.float32) + learnt["cases"][batch["cases"]]
    states = drop(states, DROPOUT_OF_INPUT)
    for layer in learnt["layers"]:
        states = _layer(layer, states, batch["mask"])
    head = learnt["head"]
    inner = drop(states, DROPOUT) @ head["inner"] + head["inner_bias"]
    inner = jax.nn.gelu(inner, approximate=False)
    return drop(inner, DROPOUT_OF_HEAD) @ head["labels"] + head["labels_bias"]


def _layer(layer: Tree, states: Any, mask: Any) -> Any:
    def product(name: str, values: Any) -> Any:
        return _times(values, layer[name]["matrix"]) + layer[name]["bias"]

    def heads(name: str) -> Any:
        parts = product(name, states).reshape(*states.shape[:2], HEADS, -1)
        return parts.transpose(0, 2, 1, 3)

    query, key, value = (heads(name) for name in ("query", "key", "value"))
    looks = query @ key.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS)
    looks = jax.nn.softmax(looks + (1 - mask[:, None, None, :]) * -1e9, axis=-1)
    attended = (looks @ value).transpose(0, 2, 1, 3).reshape(states.shape)
    states = _norm(states + product("attended", attended), layer["first"])
    wide = jax.nn.gelu(product("wide", states), approximate=False)
    return _norm(states + product("narrow", wide), layer["second"])


def _product(values: Any, matrix: Any) -> Any:
    """The product in bfloat16, summed in float32; its gradients likewise, which JAX would not."""
    low = values.astype(jnp.bfloat16), matrix.astype(jnp.bfloat16)
    return jnp.dot(*low, preferred_element_type=jnp.float32)


def _product_and_kept(values: Any, matrix: Any) -> Any:
    return _product(values, matrix), (values, matrix)


def _gradients(kept: Any, gradient: Any) -> Any:
    values, matrix = kept
    rows = _product(
        values.reshape(-1, values.shape[-1]).T, gradient.reshape(-1, gradient.shape[-1])
    )
    return _product(gradient, matrix.T), rows.astype(matrix.dtype)


_times = jax.custom_vjp(_product)
_times.defvjp(_product_and_kept, _gradients)


def _norm(values: Any, norm: Tree) -> Any:
    mean = values.mean(-1, keepdims=True)
    variance = ((values - mean) ** 2).mean(-1, keepdims=True)
    return (values - mean) * jax.lax.rsqrt(variance + EPSILON) * norm["weight"] + norm["bias"]


def loss(learnt: Tree, batch: Tree, key: Any) -> Any:
    found = jnp.split(scores(learnt, batch, key), np.cumsum(list(TASKS.values()))[:-1], axis=-1)
    total = 0.0
    for task, values in zip(TASKS, found, strict=True):
        right = batch[task]
        counts = batch["weights"] * (right >= 0)
        chances = jax.nn.log_softmax(values, axis=-1)
        chance = jnp.take_along_axis(chances, jnp.maximum(right, 0)[..., None], axis=-1)[..., 0]
        per = batch["weights"].sum() if task in ("value", "mention") else TOKENS_OF_VALUES
        total -= TASK_WEIGHTS[task] * (chance * counts).sum() / per
    return total


def fit(
    examples: Sequence[Read], *, base: Tree, epochs: int, report: Callable[[int, float], None]
) -> Tree:
    """What is learnt.

    Args:
        report: Is called after each epoch, with its number and mean loss.
    """
    learnt, key = beginning(base), jax.random.key(SEED, impl="unsafe_rbg")
    order = np.random.default_rng(SEED)
    rules = _rules(epochs * len(list(batches(examples, order))))
    state = rules.init(learnt)

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(learnt: Tree, state: Any, batch: Tree, key: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(learnt, batch, key)
        changes, state = rules.update(gradients, state, learnt)
        return optax.apply_updates(learnt, changes), state, value

    for epoch in range(1, epochs + 1):
        losses = []
        for places in batches(examples, order):
            key, now = jax.random.split(key)
            batch = padded([examples[place] for place in places])
            learnt, state, value = step(learnt, state, batch, now)
            losses.append(value)
        report(epoch, float(np.mean(losses)))
    return learnt


def _rules(steps: int) -> Any:
    """AdamW, warming up and then falling by a cosine; the head learns at a rate of its own."""

    def rule(rate: float) -> Any:
        warm = steps // 10
        falling = optax.warmup_cosine_decay_schedule(0, rate, warm, steps, rate / 50)
        return optax.adamw(falling, weight_decay=0.01)

    kinds = {"layers": "layers", "cases": "layers", "head": "head"}
    rules = {"layers": rule(RATE_OF_LAYERS), "head": rule(RATE_OF_HEAD)}
    return optax.multi_transform(rules, kinds)


@dataclass(frozen=True, slots=True)
class Read:
    """
    Attributes:
        states: (tokens, `WIDTH`), of the lower layers; half precision, to have them all at once.
    """

    example: Example
    states: NDArray[np.float16]


def read(examples: Sequence[Example], base: Tree) -> list[Read]:
    """The examples with the states of the lower layers."""
    run, found = jax.jit(lower_states), dict[int, Read]()
    for places in _grouped([len(each.ids) for each in examples], list(range(len(examples)))):
        batch = _arrays([examples[place] for place in places])
        states = np.asarray(run(base, batch), np.float16)
        for row, place in enumerate(places):
            found[place] = Read(examples[place], states[row, : len(examples[place].ids)])
    return [found[place] for place in range(len(examples))]


def batches(examples: Sequence[Read], order: np.random.Generator) -> Iterator[list[int]]:
    """Places of examples of about one length, in a new random order."""
    drawn = order.permutation(len(examples)).tolist()
    found = _grouped([len(each.states) for each in examples], drawn)
    return (found[place] for place in order.permutation(len(found)).tolist())


def _grouped(lengths: Sequence[int], places: Sequence[int]) -> list[list[int]]:
    groups = defaultdict[int, list[int]](list)
    for place in places:
        groups[_padded_length(lengths[place])].append(place)
    return [
        group[first : first + BATCH_TOKENS // length]
        for length, group in groups.items()
        for first in range(0, len(group), BATCH_TOKENS // length)
    ]


def _padded_length(length: int) -> int:
    return next(each for each in LENGTHS if each >= length)


def padded(examples: Sequence[Read]) -> dict[str, NDArray[Any]]:
    """The arrays of `_arrays`, and the states."""
    batch = _arrays([each.example for each in examples])
    batch["states"] = np.zeros((*batch["ids"].shape, WIDTH), np.float16)
    for row, each in enumerate(examples):
        batch["states"][row, : len(each.states)] = each.states
    return batch


def _arrays(examples: Sequence[Example]) -> dict[str, NDArray[Any]]:
    """Arrays of the one shape that batches of this length have; empty rows count nothing."""
    length = _padded_length(max(len(each.ids) for each in examples))
    shape = BATCH_TOKENS // length, length
    batch: dict[str, NDArray[Any]] = {task: np.full(shape, -1, np.int32) for task in TASKS}
    batch |= {name: np.zeros(shape, np.int32) for name in ("ids", "cases")}
    batch |= {name: np.zeros(shape, np.float32) for name in ("mask", "weights")}
    for row, each in enumerate(examples):
        count = len(each.ids)
        values = {"ids": each.ids, "cases": each.cases, "mask": 1, "weights": each.weights}
        for name, value in {**values, **each.labels}.items():
            batch[name][row, :count] = value
    return batch


def scores_of(learnt: Tree, examples: Sequence[Read]) -> list[Floats]:
    """Each example's scores (tokens, `LABELS`)."""
    run, found = jax.jit(scores), dict[int, Floats]()
    for places in _grouped([len(each.states) for each in examples], list(range(len(examples)))):
        rows = np.asarray(run(learnt, padded([examples[place] for place in places])))
        for row, place in enumerate(places):
            found[place] = rows[row, : len(examples[place].states)]
    return [found[place] for place in range(len(examples))]


class Trial:
    """
    Raises:
        EmbedderMisconfigured: MiniLM's weights are not there and cannot be fetched.
    """

    def __init__(self, learnt_from: Iterable[Marked], left_out: Iterable[Marked]) -> None:
        weights, tokenizer = read_model(LOCAL_MODELS[MODEL_NAME])
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LENGTHS[-1])
        self._base = encoder(weights)
        self._learnt_from, self._left_out = (
            read([example(each, self._tokenizer) for each in part], self._base)
            for part in (learnt_from, left_out)
        )

    def run(self, epochs: int, report: Callable[[int, float], None]) -> dict[str, Any]:
        """The figures of what was left out. How sure its scores are is fitted on the same messages.

        Args:
            report: Is called after each epoch, with its number and mean loss.
        """
        learnt = fit(self._learnt_from, base=self._base, epochs=epochs, report=report)
        found = _values(self._left_out, scores_of(learnt, self._left_out))
        sure = fit_confidence(found)
        judged = [
            replace(each, span=replace(each.span, score=sure.score(chances)))
            for each, chances in found
        ]
        marked = sum(len(each.example.marked.reading.values) for each in self._left_out)
        return {
            "messages": len(self._learnt_from),
            "left_out": len(self._left_out),
            "values": marked,
            "found": len(judged),
            "exact": curve(judged, marked, exact=True),
            "sharing_words": curve(judged, marked, exact=False),
            "confidence": sure.weights,
            "reliability": reliability(judged),
        }


def _values(examples: Sequence[Read], scores: Sequence[Floats]) -> Found:
    found: Found = []
    for each, rows in zip(examples, scores, strict=True):
        right = each.example.marked.reading
        _mentions, values = read_values(rows, each.example.places)
        judged = judge([span for span, _chances in values], right)
        found += zip(judged, [chances for _span, chances in values], strict=True)
    return found

"""Fitting: the question's adapter and the weights of the features, both listwise. Pure.

For one question the candidates' scores make a distribution by softmax, and the answers get as much
of it as can be had: the cross entropy of ListNet (Cao et al. 2007). Adam (Kingma, Ba 2015) with a
fixed seed and order: the same numbers come out of the same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
SEED = 7


class Adam:
    """Steps down a gradient, each number at a pace of its own."""

    def __init__(self, shape: tuple[int, ...], rate: float) -> None:
        self.rate = rate
        self.steps = 0
        self.mean = np.zeros(shape, dtype=np.float32)
        self.square = np.zeros(shape, dtype=np.float32)

    def step(self, gradient: Floats) -> Floats:
        """What to take away."""
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        return np.asarray(self.rate * mean / (np.sqrt(square) + 1e-8), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Pair:
    """A question's vector, the vectors it is to be told apart among, and the places of answers.

    Attributes:
        weight: How much it counts beside the others.
    """

    question: Floats
    passages: Floats
    answers: npt.NDArray[np.int64]
    weight: float


# Chosen by what questions of other people gain.
SHARPNESS = 15.0
PULL = 0.01
EPOCHS = 6
BATCH = 64
ADAPTER_RATE = 0.0005


def fit_adapter(pairs: Sequence[Pair]) -> Floats:
    """What is to be added to a question's vector, as a square matrix of it; pulled towards none."""
    size = len(pairs[0].question)
    turn = np.zeros((size, size), dtype=np.float32)
    adam, draw = Adam(turn.shape, ADAPTER_RATE), np.random.default_rng(SEED)
    for _ in range(EPOCHS):
        order = draw.permutation(len(pairs))
        for batch in np.array_split(order, len(pairs) // BATCH + 1):
            gradient = PULL * turn
            for place in batch:
                gradient += _gradient(turn, pairs[place]) / len(batch)
            turn -= adam.step(gradient)
    return turn


def _gradient(turn: Floats, pair: Pair) -> Floats:
    scores = SHARPNESS * (pair.passages @ (pair.question + turn @ pair.question))
    share = np.exp(scores - scores.max())
    share /= share.sum()
    share[pair.answers] -= 1 / len(pair.answers)
    towards = (pair.weight * SHARPNESS) * (pair.passages.T @ share)
    return np.outer(towards, pair.question).astype(np.float32)


@dataclass(frozen=True, slots=True)
class List:
    """A question's candidates.

    Attributes:
        values: One row a candidate, one column a feature.
        gold: Which of them answer it; at least one.
        kinds: For each kind of question, whether it is of that kind (0 or 1).
        weight: How much it counts beside the others.
    """

    values: Floats
    gold: npt.NDArray[np.bool_]
    kinds: Floats
    weight: float


# Towards 0, of weights in standard deviations; what a kind of question adds is held back more.
RIDGE = 0.02
RIDGE_OF_KINDS = 0.1
STEPS = 400
WEIGHT_RATE = 0.03


def fit_weights(lists: Sequence[List]) -> tuple[Floats, Floats]:
    """The weight of each feature (m), and what each kind of question adds to it (k, m)."""
    values = np.concatenate([each.values for each in lists])
    spread = values.std(axis=0)
    used = spread > 1e-6
    values = (values - values.mean(axis=0)) / np.where(used, spread, 1) * used
    sizes = [len(each.values) for each in lists]
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    of_question = np.repeat(np.arange(len(lists)), sizes)
    gold = np.concatenate([each.gold / each.gold.sum() for each in lists]).astype(np.float32)
    importance = np.array([each.weight for each in lists], dtype=np.float32)
    importance /= importance.sum()
    kinds = np.stack([np.r_[np.float32(1), each.kinds] for each in lists])
    ridge = np.full((kinds.shape[1], 1), RIDGE_OF_KINDS, dtype=np.float32)
    ridge[0] = RIDGE
    weights = np.zeros((kinds.shape[1], values.shape[1]), dtype=np.float32)
    adam = Adam(weights.shape, WEIGHT_RATE)
    for _ in range(STEPS):
        scores = np.einsum("ij,ij->i", values, (kinds @ weights)[of_question])
        share = np.exp(scores - np.maximum.reduceat(scores, starts)[of_question])
        share /= np.add.reduceat(share, starts)[of_question]
        error = (share - gold) * importance[of_question]
        slopes = np.add.reduceat(error[:, None] * values, starts, axis=0)
        weights -= adam.step(kinds.T @ slopes + ridge * weights)
    weights = weights / np.where(used, spread, 1) * used
    return weights[0], weights[1:]

"""Generate messages for palaces of any size: Zipf-distributed words, clustered vectors.

All of it comes from a seed, so that a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from language.analyzer import STOPWORDS
from llm.embedding import embed
from palace.models import EmbeddingSpace
from palace.storage.indexing.spaces import model_of

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

VOCABULARY = 60_000
# Zipf's law as Mandelbrot corrected it: the n-th most frequent word is said 1/(n + SHIFT)**SLOPE
# times as often as a first one would be. The most frequent of all is in 15 % of the messages.
SLOPE, SHIFT = 1.05, 10
# This share of what is said are words that carry no meaning, as in any language.
EMPTY = 0.5
# A message has so many words: the median, and the spread of the logarithm.
WORDS, SPREAD = 26, 0.5
FEWEST, MOST = 3, 160
# Real vectors are no spheres of noise: they gather around subjects.
SUBJECTS = 2000
# How far from its subject a message strays; the cosine with it is then about .7.
STRAYING = 1.0
# Terms a question is made of, beside everyday words.
ASKED = 6
_SYLLABLES = (
    *("ba", "ce", "dor", "fen", "gi", "hal", "jo", "kel", "lu", "mer", "na", "ost", "pi"),
    *("qua", "rin", "sto", "tev", "ul", "vam", "wex", "yor", "zin"),
)
_EMPTY = tuple(word for word in sorted(STOPWORDS) if len(word) > 1)


@dataclass(frozen=True, slots=True)
class Messages:
    """A run of conversations.

    Attributes:
        lengths: Messages of each conversation, 8 to 40.
        vectors: Of length 1, one row a message.
    """

    lengths: list[int]
    texts: list[str]
    vectors: Vectors


class MessageGenerator:
    """A generator of messages; `space` must be the local model's."""

    def __init__(self, space: EmbeddingSpace, seed: int = 1, subjects: int = SUBJECTS) -> None:
        self._space, self._number = space, subjects
        self._draw = np.random.default_rng(seed)

    @cached_property
    def _words(self) -> list[str]:
        """By rank, after those that carry no meaning."""
        made: dict[str, None] = {}
        while len(made) < VOCABULARY:
            syllables = self._draw.choice(_SYLLABLES, size=self._draw.integers(2, 5))
            made["".join(syllables)] = None
        return [*_EMPTY, *made]

    @cached_property
    def _shares(self) -> npt.NDArray[np.float64]:
        """The cumulative frequency of words by rank."""
        frequencies = 1 / (np.arange(VOCABULARY) + 1 + SHIFT) ** SLOPE
        shares = np.full(len(_EMPTY), EMPTY / len(_EMPTY))
        telling = frequencies * ((1 - EMPTY) / frequencies.sum())
        return np.asarray(np.cumsum(np.concatenate([shares, telling])))

    @cached_property
    def _subjects(self) -> tuple[list[str], Vectors]:
        """Messages that others are like, with their true vectors."""
        texts = self._texts(self._number)
        return texts, embed(texts, model_of(self._space))

    def _texts(self, number: int) -> list[str]:
        sizes = np.exp(self._draw.normal(np.log(WORDS), SPREAD, number))
        lengths = np.clip(sizes, FEWEST, MOST).astype(int)
        ranks = np.searchsorted(self._shares, self._draw.random(lengths.sum()) * self._shares[-1])
        said = [self._words[rank] for rank in ranks]
        ends = np.cumsum([0, *lengths]).tolist()
        return [f"{' '.join(said[start:end]).capitalize()}." for start, end in pairwise(ends)]

    def messages(self, number: int) -> Messages:
        lengths: list[int] = []
        while sum(lengths) < number:
            lengths.append(min(int(self._draw.integers(8, 41)), number - sum(lengths)))
        around = self._subjects[1][self._draw.integers(0, self._number, number)]
        noise = self._draw.standard_normal(around.shape, dtype=np.float32)
        vectors = around + noise * (STRAYING / around.shape[1] ** 0.5)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return Messages(lengths, self._texts(number), vectors)

    def questions(self) -> Iterator[str]:
        """Without end: some words of a message that many are like in meaning."""
        while True:
            words = self._draw.choice(self._subjects[0]).rstrip(".").lower().split()
            telling = [word for word in dict.fromkeys(words) if word not in STOPWORDS]
            asked = self._draw.permutation(telling)[:ASKED]
            if len(asked) == ASKED:
                yield f"What did we say about {' '.join(asked)}?"

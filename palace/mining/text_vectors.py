"""Comparing: texts embedded for what they mean, each once while rooms are read together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from language.extraction import Embed, Vectors
from llm.errors import LLMError


class Remembered:
    """An `Embed` that knows the texts it was asked for before.

    A call to the embedder costs as much as the dozen words that it is asked for in one window.
    """

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._vectors: dict[str, Vectors] = {}

    def look_ahead(self, texts: Iterable[str]) -> None:
        """Embed what is going to be asked for, if it can be done; if not, asking will tell."""
        try:
            self._learn(texts)
        except LLMError:
            return

    def __call__(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return self._embed(texts)
        self._learn(texts)
        return np.stack([self._vectors[text] for text in texts])

    def _learn(self, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, self._embed(new), strict=True)

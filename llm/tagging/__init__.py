"""Labels of tokens by MiniLM and what was learnt on top of it: what the reader of facts decodes.

`learnt/reader.npz` has MiniLM's upper three layers as they were tuned, a table of how tokens are
written, and a head. The graph is built from these and MiniLM's weights when it is first needed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from django.conf import settings
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from llm import deadline
from llm.embedding.build import MODEL_FILE, TOKENIZER_FILE
from llm.onnx_runtime import batches, open_session
from llm.tagging import build

MAX_TOKENS = 96
BATCH_TOKENS = 768
# How a token is written: the tokenizer knows no capitals.
CASES = ("small", "title", "capitals", "digits", "other")

Floats = NDArray[np.float32]
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tagged:
    """
    Attributes:
        scores: (tokens, labels), before any softmax.
        places: Where the characters of each token begin and end; equal: it is not of the text.
    """

    scores: Floats
    places: tuple[Place, ...]


def cases(text: str, places: Sequence[Place]) -> NDArray[np.int32]:
    """The number in `CASES` of each token, by where it begins and ends in the text."""
    return np.array([_case(text[start:end]) for start, end in places], np.int32)


def _case(word: str) -> int:
    if not word or word.islower():
        return 0
    if word.istitle() and word.isalpha():
        return 1
    if word.isupper():
        return 2
    if any(character.isdigit() for character in word):
        return 3
    return 0 if word.isalnum() else 4


class Tagger:
    """A tokenizer and an ONNX Runtime session. Safe to share between threads, not over a fork."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self._session = open_session(folder / MODEL_FILE)

    def tag(self, texts: Sequence[str]) -> list[Tagged]:
        """In the order of the texts. What goes on after `MAX_TOKENS` is not read.

        Raises:
            DeadlinePassed: The call is interruptible, and takes too long.
        """
        encoded = self._tokenizer.encode_batch(list(texts))
        found: dict[int, Tagged] = {}
        for places in batches([len(encoding) for encoding in encoded], BATCH_TOKENS):
            deadline.check()
            scores = self._run([(texts[place], encoded[place]) for place in places])
            for row, place in enumerate(places):
                offsets = tuple(encoded[place].offsets)
                found[place] = Tagged(scores[row, : len(offsets)], offsets)
        return [found[place] for place in range(len(texts))]

    def _run(self, batch: Sequence[tuple[str, Encoding]]) -> Floats:
        shape = (len(batch), max(len(encoding) for _text, encoding in batch))
        names = ("input_ids", "attention_mask", "cases")
        inputs = {name: np.zeros(shape, dtype=np.int32) for name in names}
        for row, (text, encoding) in enumerate(batch):
            count = len(encoding)
            inputs["input_ids"][row, :count] = encoding.ids
            inputs["attention_mask"][row, :count] = 1
            inputs["cases"][row, :count] = cases(text, encoding.offsets)
        (scores,) = self._session.run(None, inputs)
        found: Floats = scores
        return found


_making = threading.Lock()
_taggers: list[Tagger] = []
# In a forked child the parent's session has no threads, and freeing it would wait for them.
_orphans: list[list[Tagger]] = []


def tagger() -> Tagger:
    """This process's tagger, loaded at the first call (0.3 s; longer if it must be built).

    Raises:
        EmbedderMisconfigured: it cannot be built.
    """
    with _making:
        if not _taggers:
            _taggers.append(Tagger(build.ensure_built(settings.MODELS_DIR)))
        return _taggers[0]


def _forget_after_fork() -> None:
    global _taggers, _making
    _orphans.append(_taggers)
    _taggers = []
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)

"""Local embedding models on ONNX Runtime, in this process."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from django.conf import settings
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from llm import deadline
from llm.embedding import model_build
from llm.embedding.local_models import DIMENSIONS, LOCAL_MODELS, MODEL_NAME, LocalModel
from llm.errors import EmbedderMisconfigured
from llm.onnx_runtime import ERRORS, batches, open_session

logger = logging.getLogger(__name__)

# Rows times the longest row: small enough for the CPU caches, large enough to be efficient.
BATCH_TOKENS = 768
# Texts per tokenizer call, to bound memory; batches are sorted by length within them.
CHUNK_TEXTS = 4096

Vectors = NDArray[np.float32]


class LocalEmbedder:
    """A tokenizer and an ONNX Runtime session. Safe to share between threads, not over a fork."""

    def __init__(self, folder: Path, model: LocalModel, file: str = model_build.MODEL_FILE) -> None:
        """
        Args:
            file: Of its graph; one of `model_build.model_files`.

        Raises:
            EmbedderMisconfigured: its files are damaged.
        """
        self._model = model
        try:
            tokenizer = (folder / model_build.TOKENIZER_FILE).read_text(encoding="utf-8")
            self._tokenizer = _tokenizer(tokenizer)
            self._session = open_session(folder / file)
        except ERRORS as error:
            raise EmbedderMisconfigured(
                f"The files of the embedding model in {folder} are damaged ({error})."
            ) from error
        self._tokenizer.enable_truncation(model.max_tokens)
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str], *, is_question: bool = False) -> tuple[Vectors, int]:
        """Unit vectors, float32 (n, 384), in the order of the texts; and the tokens read.

        Args:
            is_question: Some models are trained to embed questions and passages differently.

        Raises:
            DeadlinePassed: The call is interruptible, and takes too long.
        """
        prefix = self._model.question if is_question else self._model.passage
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        tokens = 0
        for start in range(0, len(texts), CHUNK_TEXTS):
            chunk = [prefix + text for text in texts[start : start + CHUNK_TEXTS]]
            encoded = self._tokenizer.encode_batch_fast(chunk)
            for places in batches([len(encoding) for encoding in encoded], BATCH_TOKENS):
                deadline.check()
                batch = [encoded[place] for place in places]
                vectors[[start + place for place in places]] = self._run(batch)
            tokens += sum(len(encoding) for encoding in encoded)
        return vectors, tokens

    def _run(self, batch: Sequence[Encoding]) -> Vectors:
        shape = (len(batch), max(len(encoding) for encoding in batch))
        ids = np.zeros(shape, dtype=np.int32)
        mask = np.zeros(shape, dtype=np.int32)
        for row, encoding in enumerate(batch):
            ids[row, : len(encoding)] = encoding.ids
            mask[row, : len(encoding)] = 1
        (vectors,) = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
        found: Vectors = vectors
        return found


def _tokenizer(content: str) -> Tokenizer:
    """
    Raises:
        ValueError: the content describes no tokenizer.
    """
    try:
        return Tokenizer.from_str(content)
    except Exception as error:  # The library raises nothing more precise.
        raise ValueError(str(error)) from error


_making = threading.Lock()
# By model name and file: while one model replaces another, both are in use.
_Embedders = dict[tuple[str, str], LocalEmbedder]
_embedders: _Embedders = {}
# In a forked child the parent's session has no threads, and freeing it would wait for them.
_orphans: list[_Embedders] = []


def embedder(name: str = MODEL_NAME, *, is_question: bool = False) -> LocalEmbedder:
    """This process's embedder, loaded at the first call (0.3 s; longer if it must be built).

    Args:
        name: One of `LOCAL_MODELS`.
        is_question: The one for questions; for some models it is the same. A web process seldom
            needs the other, and a worker seldom this one.

    Raises:
        EmbedderMisconfigured: it cannot be built, or not be loaded.
    """
    model = LOCAL_MODELS[name]
    file = model_build.model_files(model)[-1 if is_question else 0]
    with _making:
        if (name, file) not in _embedders:
            _embedders[name, file] = _loaded(model, file)
        return _embedders[name, file]


def _loaded(model: LocalModel, file: str) -> LocalEmbedder:
    """Files that are damaged are built again, once."""
    folder = model_build.ensure_built(settings.MODELS_DIR, model.name)
    try:
        return LocalEmbedder(folder, model, file)
    except EmbedderMisconfigured as error:
        logger.warning("%s They are built again.", error)
        folder = model_build.ensure_built(settings.MODELS_DIR, model.name, again=True)
        return LocalEmbedder(folder, model, file)


def _forget_after_fork() -> None:
    global _embedders, _making
    _orphans.append(_embedders)
    _embedders = {}
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
# Sequential tokenizing is fast enough (the model takes fifty times longer), and the tokenizer's
# threads would not survive a fork.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

"""all-MiniLM-L6-v2 from the files that Loci uses, for libraries that would download it from a hub.

The same batches and the same number of threads as `llm.embedding.local`, so that every system
gets the same vectors at the same speed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

MAX_TOKENS = 256
BATCH_TOKENS = 768
DIMENSIONS = 384

Vectors = NDArray[np.float32]


class MiniLM:
    """Unit vectors of texts, cut at 256 tokens."""

    def __init__(self, model: Path, tokenizer: Path, threads: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"]
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 (n, 384), in the order of the texts."""
        encoded = self._tokenizer.encode_batch_fast(list(texts))
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for places in _batches([len(encoding) for encoding in encoded]):
            vectors[places] = self._run([encoded[place] for place in places])
        return vectors

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


@cache
def shared_model() -> MiniLM:
    """The process's model, loaded on first use from the files that the command names."""
    return MiniLM(
        Path(os.environ["PEER_MODEL"]),
        Path(os.environ["PEER_TOKENIZER"]),
        int(os.environ["PEER_THREADS"]),
    )


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices grouped by length, longest first, each group at most BATCH_TOKENS with padding."""
    batch: list[int] = []
    longest = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * longest > BATCH_TOKENS:
            yield batch
            batch = []
        if not batch:
            longest = lengths[place]
        batch.append(place)
    if batch:
        yield batch

"""Adapters, run in a peer's own environment: its library, the standard library and numpy.

Here is their side of the protocol of `bench_peers`: one JSON object per line, in and out. Requests
are `{"do": "open", "person"}`, `{"do": "add", "messages"}`, `{"do": "search", "query", "top_k"}`
and `{"do": "weigh"}`. Times are measured here, around the library's own call, without the protocol.
If the library fails, the process ends with its traceback.

Libraries that would download all-MiniLM-L6-v2 from a hub get it from the files that Loci uses, with
the same batches and the same number of threads as `llm.embedding.local`, so that every system gets
the same vectors at the same speed.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer


class Message(TypedDict):
    """
    Attributes:
        key: `conversation/message`, what a search has to return.
        text: With the speaker's name in front where the conversation has names.
        said_at: ISO 8601.
    """

    key: str
    session: str
    role: str
    speaker: str
    text: str
    said_at: str


class Peer(ABC):
    """One library, used as documented, with its defaults."""

    @abstractmethod
    def open(self, folder: Path) -> None:
        """Begin with a new person, stored in `folder`."""

    @abstractmethod
    def add(self, messages: list[Message]) -> None:
        """Ingest one conversation."""

    @abstractmethod
    def search(self, query: str, top_k: int) -> list[str]:
        """Keys of messages, best first; a key may come twice."""


def serve(make: Callable[[], Peer]) -> None:
    """Answer requests until the input ends."""
    # A library's own output must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = _PeerSession(make(), Path(os.environ["PEER_FOLDER"]))
    for line in sys.stdin:
        print(json.dumps(session.answer(json.loads(line))), file=answers, flush=True)


class _PeerSession:
    def __init__(self, peer: Peer, home: Path) -> None:
        self._peer, self._home, self._folder = peer, home, home

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "open":
            return self._open(request["person"])
        if request["do"] == "add":
            return _timed(lambda: self._peer.add(request["messages"]))
        if request["do"] == "search":
            return _timed(lambda: self._peer.search(request["query"], request["top_k"]))
        return {"disk_bytes": _bytes_in(self._folder), "peak_rss_bytes": peak_memory()}

    def _open(self, person: str) -> dict[str, Any]:
        name = re.sub(r"[^A-Za-z0-9]+", "-", person).strip("-")
        self._folder = self._home / f"person-{name}"
        self._folder.mkdir(parents=True)
        return _timed(lambda: self._peer.open(self._folder))


def _timed(call: Callable[[], Any]) -> dict[str, Any]:
    started = time.perf_counter()
    result = call()
    return {"result": result, "seconds": time.perf_counter() - started}


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def peak_memory() -> int:
    """Bytes, counted from the start of the program.

    On Linux, `getrusage` starts with the parent's memory at the time of the fork, so a small
    program started by a large one would look large.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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

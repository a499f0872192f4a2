"""The embedder's vectors of test texts, remembered between tests, processes and runs.

The same few hundred sentences are embedded thousands of times in a test run. Tokens are counted as
ever; the network runs only for token sequences it has not seen. `computed_afresh` is for tests of
the network itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Encoding

from llm.embedding import model_build
from llm.embedding.local import LocalEmbedder, Vectors
from llm.embedding.local_models import LocalModel

# Property tests embed random texts: the file is emptied before it grows large.
MOST_BYTES = 200 * 2**20
UNSAVED_ROWS = 256

_run, _init = LocalEmbedder._run, LocalEmbedder.__init__


class Remembered:
    """Vectors by model and token ids, in an SQLite file that all test processes share."""

    def __init__(self, path: Path) -> None:
        self._turn = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite waits for no lock while a file changes to WAL: of processes that make it at once
        # one would get "database is locked".
        with path.with_suffix(".lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            self._file = self._open(path)
        self._known: dict[bytes, bytes] = {}
        self._unsaved: dict[bytes, bytes] = {}

    @staticmethod
    def _open(path: Path) -> sqlite3.Connection:
        if path.exists() and path.stat().st_size > MOST_BYTES:
            path.unlink()
        file = sqlite3.connect(path, timeout=60, check_same_thread=False)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = OFF")
        file.execute("CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, value BLOB)")
        return file

    def find(self, key: bytes) -> bytes | None:
        with self._turn:
            if key not in self._known:
                found = self._file.execute("SELECT value FROM vector WHERE key = ?", [key])
                if (row := found.fetchone()) is None:
                    return None
                self._known[key] = row[0]
            return self._known[key]

    def keep(self, key: bytes, vector: bytes) -> None:
        with self._turn:
            self._known[key] = self._unsaved[key] = vector
            if len(self._unsaved) >= UNSAVED_ROWS:
                self._save()

    def _save(self) -> None:
        rows, self._unsaved = list(self._unsaved.items()), {}
        with self._file:
            self._file.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", rows)

    def close(self) -> None:
        with self._turn:
            self._save()
            self._file.close()


def remember(path: Path) -> Remembered:
    """From now on every local embedder of this process asks the file first."""
    remembered = Remembered(path)

    def init(
        self: LocalEmbedder, folder: Path, model: LocalModel, file: str = model_build.MODEL_FILE
    ) -> None:
        _init(self, folder, model, file)
        self._weights = (folder / model_build.STAMP_FILE).read_bytes() + file.encode()

    def run(self: LocalEmbedder, batch: Sequence[Encoding]) -> Vectors:
        keys = [_key(self, encoding) for encoding in batch]
        found = {key: remembered.find(key) for key in keys}
        missing = [place for place, key in enumerate(keys) if found[key] is None]
        if missing:
            for place, vector in zip(
                missing, _run(self, [batch[place] for place in missing]), strict=True
            ):
                found[keys[place]] = vector.tobytes()
                remembered.keep(keys[place], vector.tobytes())
        stored = np.frombuffer(b"".join(found[key] for key in keys), dtype=np.float32)
        return stored.reshape(len(keys), -1)

    LocalEmbedder.__init__, LocalEmbedder._run = init, run
    return remembered


def _key(embedder: LocalEmbedder, encoding: Encoding) -> bytes:
    ids = np.array(encoding.ids, dtype=np.int32).tobytes()
    return hashlib.sha256(embedder._weights + ids).digest()


@contextlib.contextmanager
def not_cached() -> Iterator[None]:
    """Inside this block the network runs for every text."""
    before = LocalEmbedder._run
    LocalEmbedder._run = _run
    try:
        yield
    finally:
        LocalEmbedder._run = before

"""Index cache: what a process keeps in memory of the palaces asked lately, up to a limit."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any, overload

from django.conf import settings

from palace.recall.index.palace_index import PalaceIndex
from palace.recall.index.term_index import TermIndex, TermKey


@dataclass(frozen=True, slots=True)
class IndexKey:
    """Identifies an index: its palace, embedding space and kind of vectors.

    Attributes:
        log: Oid of the change table: palaces of two schemas may have the same key.
        dimensions: Of the space.
        binary: Whether binary codes are loaded instead of vectors.
    """

    log: int
    palace_id: int
    space_id: int
    dimensions: int
    binary: bool = False


class IndexCache:
    """Indexes, most recently used last, together within a limit of bytes. Thread-safe."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[IndexKey | TermKey, PalaceIndex | TermIndex] = OrderedDict()
        self._lock = Lock()
        self._total = 0

    def __len__(self) -> int:
        return len(self._indexes)

    @property
    def bytes(self) -> int:
        """Approximate memory use of all."""
        with self._lock:
            return self._total

    @overload
    def find(self, key: IndexKey) -> PalaceIndex | None: ...
    @overload
    def find(self, key: TermKey) -> TermIndex | None: ...
    def find(self, key: IndexKey | TermKey) -> Any:
        with self._lock:
            if key in self._indexes:
                self._indexes.move_to_end(key)
            return self._indexes.get(key)

    @overload
    def put(self, key: IndexKey, index: PalaceIndex) -> None: ...
    @overload
    def put(self, key: TermKey, index: TermIndex) -> None: ...
    def put(self, key: IndexKey | TermKey, index: PalaceIndex | TermIndex) -> None:
        """Store an index, replacing an earlier one; evict the least recently used ones."""
        most_bytes = memory_bytes()
        with self._lock:
            if (old := self._indexes.pop(key, None)) is not None:
                self._total -= old.bytes
            self._indexes[key] = index
            self._total += index.bytes
            while self._total > most_bytes and self._indexes:
                self._total -= self._indexes.popitem(last=False)[1].bytes

    def clear(self) -> None:
        with self._lock:
            self._indexes.clear()
            self._total = 0


INDEX_CACHE = IndexCache()


def memory_bytes() -> int:
    """Memory limit of all indexes of a process."""
    return int(settings.RECALL_MEMORY_MB * 1024 * 1024)

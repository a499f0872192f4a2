"""Index cache: a least-recently-used cache of palace indexes, one per process.

A recall never uses a stale index: it reads the revision of its palace, and takes only an index of
that revision.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from django.conf import settings

from palace.models import EmbeddingSpace, Palace
from palace.recall.index.corpus_stats import CorpusStats
from palace.recall.index.index_loader import IndexKey, load_changes, load_index
from palace.recall.index.palace_index import PalaceIndex

# One lock per slot, so that several palaces may be loaded at once, each by one thread.
_LOAD_LOCKS = [Lock() for _ in range(64)]


class IndexCache:
    """Indexes, most recently used last. Thread-safe."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[IndexKey, PalaceIndex] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._indexes)

    def find(self, key: IndexKey) -> PalaceIndex | None:
        with self._lock:
            if key in self._indexes:
                self._indexes.move_to_end(key)
            return self._indexes.get(key)

    def put(self, key: IndexKey, index: PalaceIndex, most_bytes: int) -> None:
        """Store an index, replacing an earlier one; evict the least recently used ones."""
        with self._lock:
            self._indexes.pop(key, None)
            self._indexes[key] = index
            total = sum(each.bytes for each in self._indexes.values())
            while total > most_bytes:
                total -= self._indexes.popitem(last=False)[1].bytes

    def clear(self) -> None:
        with self._lock:
            self._indexes.clear()


INDEX_CACHE = IndexCache()


def memory_bytes() -> int:
    """Memory limit of all indexes of a process."""
    return int(settings.RECALL_MEMORY_MB * 1024 * 1024)


def index_of(
    palace: Palace, space: EmbeddingSpace, corpus_stats: CorpusStats, *, binary: bool = False
) -> PalaceIndex:
    """The palace's index, at least as new as the statistics.

    Args:
        binary: Load binary codes instead of vectors.
    """
    key = IndexKey(corpus_stats.log, palace.pk, space.pk, space.dimensions, binary)
    index = INDEX_CACHE.find(key)
    if index and index.revision == corpus_stats.revision:
        return index
    with _LOAD_LOCKS[
        hash(key) % len(_LOAD_LOCKS)
    ]:  # Other threads wait for the first one's result.
        index = INDEX_CACHE.find(key)
        if index is None or index.revision != corpus_stats.revision:
            index = load_changes(key, index) if index else load_index(key)
            INDEX_CACHE.put(key, index, memory_bytes())
    return index

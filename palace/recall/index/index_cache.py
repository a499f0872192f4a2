"""The index cache: indexes of the palaces that were asked last, as many as fit, for each process.

Nothing here is ever stale: each recall reads the revision of its palace, and takes an index of that
revision only.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from django.conf import settings

from palace.models import EmbeddingSpace, Palace
from palace.recall.index.corpus_stats import CorpusStats
from palace.recall.index.index_loader import Place, load_changes, load_index
from palace.recall.index.palace_index import PalaceIndex

# So many palaces may be read at once.
_ALONE = [Lock() for _ in range(64)]


class IndexCache:
    """Indexes, the one that was used last at the end. May be used by many threads."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[Place, PalaceIndex] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._indexes)

    def find(self, place: Place) -> PalaceIndex | None:
        with self._lock:
            if place in self._indexes:
                self._indexes.move_to_end(place)
            return self._indexes.get(place)

    def put(self, place: Place, index: PalaceIndex, most_bytes: int) -> None:
        """Keep it in the place of an earlier one; what was not used for longest makes room."""
        with self._lock:
            self._indexes.pop(place, None)
            self._indexes[place] = index
            total = sum(each.bytes for each in self._indexes.values())
            while total > most_bytes:
                total -= self._indexes.popitem(last=False)[1].bytes

    def clear(self) -> None:
        with self._lock:
            self._indexes.clear()


INDEX_CACHE = IndexCache()


def memory_bytes() -> int:
    """How much all indexes of a process may take."""
    return int(settings.RECALL_MEMORY_MB * 1024 * 1024)


def index_of(
    palace: Palace, space: EmbeddingSpace, corpus_stats: CorpusStats, *, binary: bool = False
) -> PalaceIndex:
    """The palace's index, at least as new as the statistics.

    Args:
        binary: With the binary codes of the vectors instead of the vectors.
    """
    place = Place(corpus_stats.log, palace.pk, space.pk, space.dimensions, binary)
    index = INDEX_CACHE.find(place)
    if index and index.revision == corpus_stats.revision:
        return index
    with _ALONE[hash(place) % len(_ALONE)]:  # Others wait for what the first one reads.
        index = INDEX_CACHE.find(place)
        if index is None or index.revision != corpus_stats.revision:
            index = load_changes(place, index) if index else load_index(place)
            INDEX_CACHE.put(place, index, memory_bytes())
    return index

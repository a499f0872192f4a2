"""The shelf: atlases of the palaces that were asked last, as many as fit; each process has its own.

Nothing here is ever stale: each recall reads the revision of its palace, and takes an atlas of that
revision only.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from django.conf import settings

from palace.models import EmbeddingSpace, Palace
from palace.recall.index.corpus_stats import CorpusStats
from palace.recall.index.index_loader import Place, survey, survey_changes
from palace.recall.index.palace_index import PalaceIndex

# So many palaces may be read at once.
_ALONE = [Lock() for _ in range(64)]


class IndexCache:
    """Atlases, the one that was used last at the end. May be used by many threads."""

    def __init__(self) -> None:
        self._atlases: OrderedDict[Place, PalaceIndex] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._atlases)

    def find(self, place: Place) -> PalaceIndex | None:
        with self._lock:
            if place in self._atlases:
                self._atlases.move_to_end(place)
            return self._atlases.get(place)

    def put(self, place: Place, atlas: PalaceIndex, most_bytes: int) -> None:
        """Keep it in the place of an earlier one; what was not used for longest makes room."""
        with self._lock:
            self._atlases.pop(place, None)
            self._atlases[place] = atlas
            total = sum(each.bytes for each in self._atlases.values())
            while total > most_bytes:
                total -= self._atlases.popitem(last=False)[1].bytes

    def clear(self) -> None:
        with self._lock:
            self._atlases.clear()


SHELF = IndexCache()


def memory_bytes() -> int:
    """How much all atlases of a process may take."""
    return int(settings.RECALL_MEMORY_MB * 1024 * 1024)


def atlas_of(
    palace: Palace, space: EmbeddingSpace, corpus_stats: CorpusStats, *, of_signs: bool = False
) -> PalaceIndex:
    """The palace's atlas, at least as new as the census.

    Args:
        of_signs: With the signs of the vectors instead of the vectors.
    """
    place = Place(corpus_stats.log, palace.pk, space.pk, space.dimensions, of_signs)
    atlas = SHELF.find(place)
    if atlas and atlas.revision == corpus_stats.revision:
        return atlas
    with _ALONE[hash(place) % len(_ALONE)]:  # Others wait for what the first one reads.
        atlas = SHELF.find(place)
        if atlas is None or atlas.revision != corpus_stats.revision:
            atlas = survey_changes(place, atlas) if atlas else survey(place)
            SHELF.put(place, atlas, memory_bytes())
    return atlas

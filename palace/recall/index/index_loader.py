"""Index loader: a palace's index, read from the database and cached per process, up to a limit.

A recall never uses a stale index: it reads the revision of its palace, and takes only an index of
that revision. After a change only the changed drawers are read. Memory that a recall frees is given
back to the system.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from django.conf import settings

from isolation.raw_sql import fetch_rows
from palace.models import EmbeddingSpace, Palace
from palace.recall.index.corpus_stats import CorpusStats, TermIndex, TermKey
from palace.recall.index.palace_index import (
    MESSAGE,
    NO_CODES,
    NO_VECTORS,
    BinaryCodes,
    IndexArrays,
    Messages,
    PalaceIndex,
    Vectors,
    packed,
)
from palace.recall.index.vector_cache import VectorCache
from palace.recall.raw_sql import (
    Keys,
    Kind,
    array_literal,
    decode_array,
    isin_sorted,
    starts_new,
    union,
)


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


# One lock per slot, so that several palaces may be loaded at once, each by one thread.
_LOAD_LOCKS = [Lock() for _ in range(64)]
# Columns of each message as bytes, in the order of `MESSAGE`.
_MESSAGES = """
    substring(array_send(array_agg({m}.id)) FROM 21),
    substring(array_send(array_agg({m}.room_id)) FROM 21),
    substring(array_send(array_agg(
        hashtextextended({m}.conversation, hashtext({m}.source)))) FROM 21),
    substring(array_send(array_agg({m}.position)) FROM 21),
    substring(array_send(array_agg(extract(epoch FROM {m}.said_at)::float8)) FROM 21),
    substring(array_send(array_agg({m}.preference::float4)) FROM 21),
    substring(array_send(array_agg({m}.terms)) FROM 21),
    substring(array_send(array_agg({m}.traits)) FROM 21),
    array_agg({m}.role || ':' || {m}.speaker)
"""
# One statement, so that all parts come from one snapshot.
_LOAD = f"""
SELECT (SELECT coalesce(max(revision), 0) FROM palace_change WHERE palace_id = %(palace)s),
       m.*, p.*
FROM (
    SELECT {_MESSAGES.format(m="d")} FROM palace_drawer d
    WHERE palace_id = %(palace)s AND trashed_at IS NULL AND {{drawers}}
) m, (
    SELECT substring(array_send(array_agg(drawer_id << 16 | ordinal)) FROM 21),
           string_agg({{vector}}, ''::bytea)
    FROM palace_passage
    WHERE palace_id = %(palace)s AND space_id = %(space)s AND bits IS NOT NULL AND {{passages}}
) p
"""  # noqa: S608 - put together from constants.
_OF_ALL = {
    "drawers": "true",
    "passages": "drawer_id NOT IN (SELECT id FROM palace_drawer"
    " WHERE palace_id = %(palace)s AND trashed_at IS NOT NULL)",
}
_OF_SOME = {
    "drawers": "id = ANY(%(keys)s::bigint[])",
    "passages": "drawer_id = ANY(%(keys)s::bigint[])",
}
# Without the length header.
_VECTOR, _BITS = "substring(halfvec_send(embedding) FROM 5)", "substring(bit_send(bits) FROM 5)"
_FIELDS = (
    "palace_id, id, room_id, source, conversation, position, role, speaker, said_at, preference,"
    " terms, traits"
)
# One index scan along the conversation reads a message and its neighbours up to `reach`.
_AROUND = f"""
SELECT {_MESSAGES.format(m="n")}
FROM unnest(%(keys)s::bigint[], %(reach)s::int[]) AS wanted (id, reach)
-- A plain join would read the whole palace: the planner's default disk costs make it look cheaper.
CROSS JOIN LATERAL (
    SELECT {_FIELDS} FROM palace_drawer
    WHERE palace_id = %(palace)s AND id = wanted.id AND trashed_at IS NULL
    LIMIT 1
) d
CROSS JOIN LATERAL (
    SELECT d.*
    UNION ALL (
        SELECT {_FIELDS} FROM palace_drawer
        WHERE palace_id = %(palace)s AND source = d.source AND conversation = d.conversation
          AND position < d.position AND trashed_at IS NULL
        ORDER BY position DESC LIMIT wanted.reach
    )
    UNION ALL (
        SELECT {_FIELDS} FROM palace_drawer
        WHERE palace_id = %(palace)s AND source = d.source AND conversation = d.conversation
          AND position > d.position AND trashed_at IS NULL
        ORDER BY position LIMIT wanted.reach
    )
) n
"""  # noqa: S608 - put together from constants.
_COLUMNS: dict[str, Kind] = {
    "key": "i8",
    "room": "i8",
    "conversation": "i8",
    "position": "i4",
    "said_at": "f8",
    "preference": "f4",
    "terms": "i4",
    "traits": "i2",
}
# How many vectors of a large palace are kept: those of its sample, and of some ten questions. And
# which part of the memory for indexes is left free, so that an index may grow.
MOST_CACHED, SPARE_SHARE = 20_000, 16
# With more changed drawers than this, the whole palace is reloaded.
MANY_CHANGED = 4000


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
            INDEX_CACHE.put(key, index)
    return index


def load_index(place: IndexKey) -> PalaceIndex:
    """Load the whole palace."""
    index = PalaceIndex(_read(place, None))
    if place.binary:
        free = memory_bytes() - memory_bytes() // SPARE_SHARE - index.bytes
        number = min(max(free, 0) // (2 * place.dimensions), MOST_CACHED)
        given = (place.palace_id, place.space_id, place.dimensions)
        index.vector_cache = VectorCache(*given, number, index.revision)
    return index


def load_changes(place: IndexKey, index: PalaceIndex) -> PalaceIndex:
    """Load the changes since `index` and apply them; `index` itself if there are none."""
    changes = fetch_rows(
        "SELECT revision, drawers FROM palace_change WHERE palace_id = %s AND revision >= %s"
        " ORDER BY revision",
        [place.palace_id, index.revision],
    )
    if [revision for revision, _ in changes] == [index.revision]:
        return index
    keys = _changed(index, changes)
    if keys is None:
        return load_index(place)
    # A write between the two statements may be read in part, so the revision is the older one.
    current = replace(_read(place, keys), revision=changes[-1][0])
    return index.with_changes(keys, current)


def load_around(palace_id: int, drawers: Keys, reach: npt.NDArray[np.int64]) -> PalaceIndex:
    """Load drawers of a palace with their adjacent messages, without vectors.

    Args:
        reach: Number of messages before and after each drawer.
    """
    parameters = {
        "palace": palace_id,
        "keys": array_literal(drawers),
        "reach": array_literal(reach),
    }
    [(*columns, said_by)] = fetch_rows(_AROUND, parameters)
    messages, voices = _messages(columns, said_by or [])
    if len(messages):  # A message may be adjacent to several others.
        keys = messages["key"]
        messages = messages[starts_new(keys)]
    return PalaceIndex(
        IndexArrays(0, messages, voices, np.empty(0, np.int64), NO_VECTORS, NO_CODES)
    )


def _changed(index: PalaceIndex, changes: list[tuple[int, list[int] | None]]) -> Keys | None:
    """Keys of the drawers changed since the index, ascending; None if unknown.

    If the log lacks the index's own revision, the index was read in a transaction that was rolled
    back, or is so old that later entries were pruned.
    """
    if not changes or changes[0][0] != index.revision:
        return None
    parts = [np.array(drawers, dtype=np.int64) for _, drawers in changes[1:] if drawers]
    if len(parts) < len(changes) - 1 or sum(map(len, parts)) > MANY_CHANGED:
        return None
    return union(*parts)


def _read(place: IndexKey, keys: Keys | None) -> IndexArrays:
    """Read the arrays of all drawers, or of those with these keys."""
    parameters: dict[str, object] = {"palace": place.palace_id, "space": place.space_id}
    if keys is not None:
        parameters["keys"] = array_literal(keys)
    statement = _LOAD.format(
        vector=_BITS if place.binary else _VECTOR, **_OF_ALL if keys is None else _OF_SOME
    )
    [(revision, *columns, said_by, sent, sent_vectors)] = fetch_rows(statement, parameters)
    messages, voices = _messages(columns, said_by or [])
    passages = decode_array(sent, "i8")
    order = np.argsort(passages, kind="stable")
    # Passages of other drawers are in the trash.
    order = order[isin_sorted(passages[order] >> 16, messages["key"])]
    vectors, codes = _vectors(sent_vectors or b"", place)
    vectors, codes = vectors[order[: len(vectors)]], codes[order[: len(codes)]]
    return IndexArrays(revision, messages, voices, passages[order], vectors, codes)


def _messages(
    columns: Sequence[bytes | None], said_by: Sequence[str]
) -> tuple[Messages, tuple[str, ...]]:
    voices = {voice: place for place, voice in enumerate(dict.fromkeys(said_by))}
    messages = np.zeros(len(said_by), MESSAGE)
    for (name, kind), column in zip(_COLUMNS.items(), columns, strict=True):
        messages[name] = decode_array(column, kind)
    messages["voice"] = [voices[voice] for voice in said_by]
    return messages[np.argsort(messages["key"], kind="stable")], tuple(voices)


def _vectors(sent: bytes, place: IndexKey) -> tuple[Vectors, BinaryCodes]:
    """Decode vectors or binary codes; the other is empty."""
    if place.binary:
        rows = np.frombuffer(sent, np.uint8).reshape(-1, -(-place.dimensions // 8))
        return NO_VECTORS, packed(rows)
    halves = np.frombuffer(sent, ">f2").reshape(-1, place.dimensions)
    return halves.astype(np.float32), NO_CODES


def give_memory_back() -> bool:
    """Have the allocator return what is free; False where it cannot be asked to.

    By itself it keeps most of it: what lies between arrays that are still used, and all that
    other threads have freed. Takes some milliseconds.
    """
    trim = _trim()
    if trim is None:
        return False
    gc.collect()
    trim(0)
    return True


@cache
def _trim() -> Any:
    """Of the GNU C library alone."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None

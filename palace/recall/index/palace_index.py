"""Palace index: one palace in memory, as immutable arrays, and its preselection by bits.

The Hamming distance of two vectors' sign bits grows with their angle (Charikar: Similarity
Estimation Techniques from Rounding Algorithms, 2002). Codes take a thirty-second of the memory of
vectors; only if they do not fit either, the database is asked, which compares its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector

from isolation.raw_sql import fetch_rows
from language.english.message_traits import TELLS_NOTHING, Trait
from palace.models.packed import unpack
from palace.recall.index.vector_cache import VectorCache
from palace.recall.raw_sql import (
    NO_KEYS,
    Keys,
    PassageOffsets,
    Rows,
    array_literal,
    decode_array,
    isin_sorted,
    union,
)
from palace.storage.indexing.postings import EVERY

Vectors = npt.NDArray[np.float32]
# Sign bits of a vector, most significant bit first, 64 per word, padded with zeros.
BinaryCodes = npt.NDArray[np.uint64]
Messages = npt.NDArray[np.void]
MESSAGE = np.dtype(
    [
        ("key", "i8"),
        ("room", "i8"),
        ("conversation", "i8"),  # A hash of its source and its id there.
        ("position", "i4"),
        ("said_at", "f8"),  # Seconds since the epoch.
        ("preference", "f4"),
        ("terms", "i4"),
        ("traits", "i2"),
        ("voice", "i4"),  # Index of its role and speaker in `IndexArrays.voices`.
    ]
)
NO_VECTORS: Vectors = np.empty((0, 0), np.float32)
NO_CODES: BinaryCodes = np.empty((0, 0), np.uint64)
# Fields that are read for each question, each as an array of its own: it is taken from faster.
_READ = ("key", "room", "said_at", "preference", "terms", "traits", "voice")
Ids = npt.NDArray[np.int64]

# How many of the closest by Hamming distance are compared exactly. With 37,700 real passages they
# contain .9993 of the ten closest by cosine.
CLOSE_BY_BITS = 1000
# Sample size: estimates the mean within 3 % of the spread, and the spread within 2 %.
SAMPLE = 1000

_TRASH = "(SELECT id FROM palace_drawer WHERE palace_id = %s AND trashed_at IS NOT NULL)"
# An index-only scan of the primary key serves this query.
_BY_BITS = (
    "SELECT substring(array_send(ARRAY(SELECT drawer_id FROM palace_passage"
    " WHERE palace_id = %s AND space_id = %s AND bits IS NOT NULL AND {condition}"
    " ORDER BY bits <~> binary_quantize(%s::halfvec) LIMIT %s)) FROM 21)"
)


class PalaceIndex:
    """
    Attributes:
        arrays: Of all drawers of the palace outside the trash.
        keys: Drawer keys, ascending; a drawer's position here is its row.
        said_at: Of each row, in seconds since the epoch.
        uninformative: Keys of the uninformative drawers, ascending.
        before: For each row, the row of the previous message in its conversation, -1 at the
            start; `after` likewise.
        voice_roles: The role of each voice; `voice_speakers` likewise.
        vector_cache: For a large palace only; shared with the index before it.
    """

    def __init__(
        self,
        arrays: IndexArrays,
        adjacent: tuple[Rows, Rows] | None = None,
        vector_cache: VectorCache | None = None,
    ) -> None:
        """
        Args:
            adjacent: `before` and `after`, if known.
        """
        self.arrays = arrays
        self.vector_cache = vector_cache
        self.keys: Keys = arrays.messages["key"].copy()
        self.said_at: npt.NDArray[np.float64] = arrays.messages["said_at"].copy()
        self.uninformative: Keys = self.keys[_is_uninformative(arrays.messages["traits"])]
        self.passage_offsets = PassageOffsets(arrays.passages)
        self.before, self.after = adjacent or _adjacent(arrays.messages)
        # The last row is of no message, the neighbour of a conversation's first and last.
        self._columns = {name: _with_zero(arrays.messages[name]) for name in _READ}
        self._columns["terms"] = self._columns["terms"].astype(np.float32)
        parted = [voice.partition(":") for voice in arrays.voices]
        self.voice_roles = np.array([role for role, _, _ in parted], dtype=str)
        self.voice_speakers = np.array([speaker for _, _, speaker in parted], dtype=str)
        columns = self._columns.values()
        for array in (self.keys, self.said_at, *columns, arrays.messages, arrays.vectors):
            array.flags.writeable = False

    @property
    def revision(self) -> int:
        return self.arrays.revision

    @property
    def bytes(self) -> int:
        """Approximate memory use."""
        own = (self.keys, self.said_at, self.before, self.after, *self._columns.values())
        offsets = 4 * self.passage_offsets.drawers.nbytes
        cached = 0 if self.vector_cache is None else self.vector_cache.bytes
        return self.arrays.bytes + sum(array.nbytes for array in own) + offsets + cached

    def with_changes(self, drawers: Keys, current: IndexArrays) -> PalaceIndex:
        """A new index with changes applied.

        Args:
            drawers: Keys of all changed drawers, ascending.
            current: Their current arrays; deleted and trashed drawers are missing.
        """
        arrays = self.arrays.without(drawers).joined(current)
        if self.vector_cache is not None:
            self.vector_cache.forget(drawers, current.revision)
        adjacent = self._update_adjacent(drawers, current.messages, arrays.messages)
        return PalaceIndex(arrays, adjacent, self.vector_cache)

    def _update_adjacent(
        self, removed: Keys, added: Messages, messages: Messages
    ) -> tuple[Rows, Rows]:
        """Update `before` and `after`, recomputing only the changed conversations.

        Args:
            removed: Keys of this index that are no longer present, ascending.
            added: Messages that are not in this index.
        """
        leave = isin_sorted(self.keys, removed)
        rows = np.full(len(self.keys) + 1, -1, dtype=np.int64)  # The last one is for row -1.
        stayed = np.searchsorted(messages["key"], self.keys[~leave])
        rows[:-1][~leave] = stayed
        before, after = np.full((2, len(messages)), -1, dtype=np.int64)
        before[stayed], after[stayed] = rows[self.before[~leave]], rows[self.after[~leave]]
        left_in = self.arrays.messages["conversation"][leave]
        touched = union(left_in, added["conversation"])
        written = np.flatnonzero(isin_sorted(messages["conversation"], touched))
        own = np.append(written, -1)
        before_written, after_written = _adjacent(messages[written])
        before[written], after[written] = own[before_written], own[after_written]
        return before, after

    def rows_of(self, drawers: Keys) -> Rows:
        """Rows of the drawers that are in the index, in the order given."""
        if not len(self.keys):
            return np.empty(0, np.int64)
        rows: Rows = np.minimum(self.keys.searchsorted(drawers), len(self.keys) - 1)
        return np.asarray(rows[self.keys[rows] == drawers])

    def passages_of(self, drawers: Keys) -> Keys:
        """The passages of these drawers, which ascend, as `drawer << 16 | ordinal`."""
        return self.arrays.passages[self.passage_offsets.rows_of(drawers)]

    def said_within(self, start: float, end: float) -> Keys:
        """Drawers said from the first moment on and before the second, both in epoch seconds."""
        return self.keys[(self.said_at >= start) & (self.said_at < end)]

    def column(self, name: str, rows: Rows) -> npt.NDArray[Any]:
        """A field of the messages at these rows; 0 for row -1."""
        return self._columns[name][rows]


def _with_zero(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.append(column, np.zeros(1, column.dtype))


def _is_uninformative(traits: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """A question that continues the conversation counts as informative."""
    return np.asarray(((traits & TELLS_NOTHING) > 0) & ((traits & Trait.TAKES_UP) == 0))


def _adjacent(messages: Messages) -> tuple[Rows, Rows]:
    order = np.lexsort((messages["position"], messages["conversation"]))
    conversations = messages["conversation"][order]
    follows = conversations[1:] == conversations[:-1]
    before, after = np.full((2, len(messages)), -1, dtype=np.int64)
    before[order[1:][follows]] = order[:-1][follows]
    after[order[:-1][follows]] = order[1:][follows]
    return before, after


@dataclass(frozen=True, slots=True, eq=False)
class IndexArrays:
    """Arrays of some or all drawers of a palace.

    Attributes:
        revision: The last change included; 0 before the first one.
        messages: Of dtype `MESSAGE`, by ascending key.
        voices: `role:speaker` of all speakers.
        passages: `drawer << 16 | ordinal` of each passage with a vector, ascending.
        vectors: One row per passage; empty for a large palace.
        codes: Binary codes, for a large palace only.
    """

    revision: int
    messages: Messages
    voices: tuple[str, ...]
    passages: Keys
    vectors: Vectors
    codes: BinaryCodes

    @property
    def bytes(self) -> int:
        kept = (self.messages, self.passages, self.vectors, self.codes)
        return sum(array.nbytes for array in kept)

    def without(self, drawers: Keys) -> IndexArrays:
        """
        Args:
            drawers: Keys, ascending.
        """
        removed = isin_sorted(self.messages["key"], drawers)
        if not removed.any():  # Copying the vectors is expensive.
            return self
        stay = ~isin_sorted(self.passages >> 16, drawers)
        return replace(
            self,
            messages=self.messages[~removed],
            passages=self.passages[stay],
            vectors=self.vectors[stay[: len(self.vectors)]],
            codes=self.codes[stay[: len(self.codes)]],
        )

    def joined(self, later: IndexArrays) -> IndexArrays:
        """Concatenate both, with the later revision; they have no drawer in common."""
        others = later.messages.copy()
        others["voice"] += len(self.voices)
        messages = np.concatenate([self.messages, others])
        if (messages["key"][1:] < messages["key"][:-1]).any():  # New keys are usually last.
            messages = messages[np.argsort(messages["key"], kind="stable")]
        messages["voice"], voices = _distinct(messages["voice"], self.voices + later.voices)
        passages = np.concatenate([self.passages, later.passages])
        vectors = np.concatenate([self.vectors, later.vectors])
        codes = np.concatenate([self.codes, later.codes])
        if (passages[1:] < passages[:-1]).any():
            order = np.argsort(passages, kind="stable")
            passages = passages[order]
            vectors, codes = vectors[order[: len(vectors)]], codes[order[: len(codes)]]
        return IndexArrays(later.revision, messages, voices, passages, vectors, codes)


def _distinct(
    places: npt.NDArray[np.int32], voices: tuple[str, ...]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Re-index speakers; purged names must not survive."""
    used: dict[str, int] = {}
    new_index = np.zeros(len(voices), dtype=np.int32)
    for place in np.flatnonzero(np.bincount(places)).tolist():
        new_index[place] = used.setdefault(voices[place], len(used))
    return new_index[places], tuple(used)


def binary_codes(vectors: npt.NDArray[np.float16]) -> BinaryCodes:
    """Binary codes of each row; zero counts as negative, as in the database."""
    return packed(np.packbits(vectors > 0, axis=1))


def packed(codes: npt.NDArray[np.uint8]) -> BinaryCodes:
    """Words of 64 bits from bytes of 8."""
    missing = -codes.shape[1] % 8
    whole = np.pad(codes, ((0, 0), (0, missing))) if missing else codes
    return np.ascontiguousarray(whole).view(np.uint64)


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A question's vectors, for comparing further drawers of a large palace.

    Attributes:
        vectors: The question's and, if it differs, that of the unadapted question; in float32 of
            numbers of half precision, like the stored ones.
        codes: Binary codes of the first vector.
        index: The palace index with binary codes; None if they do not fit in memory.
    """

    palace_id: int
    space_id: int
    vectors: Vectors
    codes: BinaryCodes
    index: PalaceIndex | None


def closest_by_bits(
    vector_query: VectorQuery,
    *,
    without_trash: bool,
    period: tuple[datetime, datetime] | None = None,
    only: Ids | None = None,
    without: Ids = NO_KEYS,
) -> Ids:
    """Drawers of the passages that are closest by Hamming distance.

    Args:
        without_trash: Whether to filter trashed drawers.
        period: Only drawers said from the first moment on and before the second.
        only: Keys of the drawers to choose from, ascending; None: all.
        without: Keys of drawers to leave out, ascending.
    """
    if vector_query.index:
        return _closest_in_memory(vector_query.index, vector_query.codes, period, only, without)
    condition: str = "true"
    parameters: list[object] = []
    if period:
        condition = (
            "drawer_id IN (SELECT id FROM palace_drawer WHERE palace_id = %s"
            " AND said_at >= %s AND said_at < %s AND trashed_at IS NULL)"
        )
        parameters = [vector_query.palace_id, *period]
    elif without_trash:
        condition, parameters = f"drawer_id NOT IN {_TRASH}", [vector_query.palace_id]
    if only is not None:
        condition += " AND drawer_id = ANY(%s::bigint[])"
        parameters.append(array_literal(only))
    if len(without):
        condition += " AND drawer_id <> ALL(%s::bigint[])"
        parameters.append(array_literal(without))
    [(keys,)] = fetch_rows(
        _BY_BITS.format(condition=condition),
        [
            vector_query.palace_id,
            vector_query.space_id,
            *parameters,
            HalfVector(vector_query.vectors[0]).to_text(),
            CLOSE_BY_BITS,
        ],
    )
    return union(decode_array(keys, "i8"))


def _closest_in_memory(
    index: PalaceIndex,
    codes: BinaryCodes,
    period: tuple[datetime, datetime] | None,
    only: Ids | None,
    without: Ids,
) -> Ids:
    owners, kept = index.arrays.passages >> 16, index.arrays.codes
    if period:
        start, end = (moment.timestamp() for moment in period)
        said = index.said_within(start, end)
        only = said if only is None else said[isin_sorted(said, only)]
    if only is not None:
        # Few are said in most periods: looking for each passage among them would take longer.
        rows = index.passage_offsets.rows_of(only)
        owners, kept = owners[rows], kept[rows]
    if len(without):
        within = ~isin_sorted(owners, without)
        owners, kept = owners[within], kept[within]
    if len(owners) > CLOSE_BY_BITS:
        differing = np.zeros(len(owners), dtype=np.uint16)
        for word, of_question in zip(kept.T, codes, strict=True):
            differing += np.bitwise_count(word ^ of_question)
        owners = owners[np.argpartition(differing, CLOSE_BY_BITS)[:CLOSE_BY_BITS]]
    return union(owners)


def sample(vector_query: VectorQuery, number: int, trash: Ids) -> Ids:
    """Keys of about SAMPLE evenly spaced drawers; the same until the palace changes.

    Args:
        number: Approximate number of drawers.
    """
    if vector_query.index:
        drawers = vector_query.index.passage_offsets.drawers
        return drawers[:: max(len(drawers) // SAMPLE, 1)]
    [(keys,)] = fetch_rows(
        "SELECT string_agg(substring(drawers FROM 1 + 8 * place FOR 8), ''::bytea)"
        " FROM palace_posting, generate_series(0, number - 1, %s) place"
        " WHERE palace_id = %s AND term = %s",
        [max(number // SAMPLE, 1), vector_query.palace_id, EVERY],
    )
    found = np.sort(unpack(keys, "i8"))
    found = found[:: max(len(found) // SAMPLE, 1)]
    return np.asarray(found[~isin_sorted(found, trash)])

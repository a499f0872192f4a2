"""Vectors of a large palace that a process keeps, and their inner products with a question's."""

from __future__ import annotations

from threading import Lock

import numpy as np
import numpy.typing as npt

from isolation.raw_sql import fetch_rows
from palace.recall.raw_sql import NO_KEYS, Keys, array_literal, decode_array, isin_sorted, union

# The bits of half-precision numbers.
Halves = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float32]
# How many vectors are multiplied at a time: their products fit a processor's cache.
BATCH = 125
# Of so many sums pgvector adds one product in turn to each, and then the halves to each other.
_LANES = 8
# So many products are moved at a time: as many as fit the largest number that NumPy moves at once.
_MOVED = 4
# Both aggregates have the same order; vectors are without the length header.
_VECTORS = (
    "SELECT substring(array_send(array_agg(drawer_id << 16 | ordinal)) FROM 21),"
    " string_agg(substring(halfvec_send(embedding) FROM 5), ''::bytea)"
    " FROM palace_passage WHERE palace_id = %s AND space_id = %s AND embedding IS NOT NULL"
    " AND drawer_id = ANY(%s::bigint[])"
)


class VectorCache:
    """Vectors of a large palace's passages, in half precision, read when a question first needs
    them: most are far from all that is ever asked. Thread-safe.

    An index and those that follow it share one. When it is full it begins anew.
    """

    def __init__(
        self, palace_id: int, space_id: int, dimensions: int, number: int, revision: int
    ) -> None:
        """
        Args:
            number: How many it holds at most.
            revision: The palace's last change that is known.
        """
        self._palace_id, self._space_id, self._revision = palace_id, space_id, revision
        # The system provides the memory as it is written to.
        self._halves: Halves = np.empty((number, dimensions), np.int16)
        self._filled = 0
        self._passages, self._rows = NO_KEYS, NO_KEYS
        self._lock = Lock()

    @property
    def number(self) -> int:
        """How many vectors it holds at most."""
        return len(self._halves)

    @property
    def bytes(self) -> int:
        """The most memory that it may use."""
        return self._halves.nbytes

    def look_up(self, passages: Keys, revision: int) -> tuple[Keys, Halves]:
        """The passages that have a vector, and these.

        Args:
            passages: `drawer << 16 | ordinal`, ascending.
            revision: The change at which they are known.
        """
        with self._lock:
            is_here, rows = self._places_of(passages)
            # Row 0 in the place of those that are not here, which are written over it.
            halves = self._halves.take(rows, axis=0)
        if is_here.all():
            return passages, halves
        read, halves_read = self._read(passages[~is_here])
        self._add(read, halves_read, revision)
        places = passages.searchsorted(read)
        halves[places], is_here[places] = halves_read, True
        return (passages, halves) if is_here.all() else (passages[is_here], halves[is_here])

    def _places_of(self, passages: Keys) -> tuple[npt.NDArray[np.bool_], Keys]:
        """Which of the passages are here, and the row of each, 0 for the others."""
        if not len(self._passages):
            return np.zeros(len(passages), dtype=np.bool_), np.zeros(len(passages), np.int64)
        places = np.minimum(self._passages.searchsorted(passages), len(self._passages) - 1)
        is_here = self._passages[places] == passages
        return is_here, np.where(is_here, self._rows[places], 0)

    def forget(self, drawers: Keys, revision: int) -> None:
        """Forget the passages of drawers that were changed.

        Args:
            drawers: Keys, ascending.
            revision: Of the last change; what was read before it is not stored any more.
        """
        with self._lock:
            stay = ~isin_sorted(self._passages >> 16, drawers)
            # Nothing of a deleted text stays in memory.
            self._halves[self._rows[~stay]] = 0
            self._passages, self._rows = self._passages[stay], self._rows[stay]
            self._revision = revision

    def _read(self, passages: Keys) -> tuple[Keys, Halves]:
        drawers = array_literal(union(passages >> 16))
        given = [self._palace_id, self._space_id, drawers]
        [(sent, vectors)] = fetch_rows(_VECTORS, given, prepared=True)
        found = decode_array(sent, "i8")
        halves = np.frombuffer(vectors or b"", ">i2").reshape(len(found), self._halves.shape[1])
        order = found.argsort(kind="stable")
        order = order[isin_sorted(found[order], passages)]
        return found[order], halves[order].astype(np.int16)

    def _add(self, passages: Keys, halves: Halves, revision: int) -> None:
        with self._lock:
            # Another thread may have read the same, or a change.
            is_new = ~isin_sorted(passages, self._passages)
            passages, halves = passages[is_new], halves[is_new]
            if revision != self._revision or len(passages) > len(self._halves):
                return
            if self._filled + len(passages) > len(self._halves):
                self._passages, self._rows, self._filled = NO_KEYS, NO_KEYS, 0
                self._halves = np.empty_like(self._halves)
            end = self._filled + len(passages)
            self._halves[self._filled : end] = halves
            places = self._passages.searchsorted(passages)
            self._passages = np.insert(self._passages, places, passages)
            self._rows = np.insert(self._rows, places, np.arange(self._filled, end))
            self._filled = end


def inner_products(halves: Halves, vector: Floats) -> Floats:
    """The inner product of the vector with each row, to the bit as pgvector computes it on a
    processor with AVX: so it does not matter to a score where it was computed.

    Args:
        vector: Of half-precision numbers, whose products with others float32 holds exactly.
    """
    parts = [
        _inner_products(halves[first : first + BATCH], vector)
        for first in range(0, len(halves), BATCH)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.float32)


def _inner_products(halves: Halves, vector: Floats) -> Floats:
    products = _floats(halves)
    products *= vector
    whole = products.shape[1] // _LANES * _LANES
    result = _sum_of_lanes(products[:, :whole])
    for place in range(whole, products.shape[1]):
        result = result + products[:, place]
    return result


def _sum_of_lanes(products: Floats) -> Floats:
    """
    Args:
        products: The number of columns is a multiple of that of lanes.
    """
    number = len(products)
    # The products that are added to the sums in one turn, of all rows, come to lie side by side:
    # then a turn is one long addition, and not one of eight numbers for each row.
    moved = np.ascontiguousarray(products).view(np.complex128).T
    turns = np.ascontiguousarray(moved).view(np.float32).reshape(-1, _LANES * number)
    # The first half of the lanes of each row, then the second.
    first, second = np.add.reduce(turns, axis=0).reshape(2, number, _MOVED)
    sums: Floats = first + second
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0]


def _floats(halves: Halves) -> Floats:
    """Several times as fast as NumPy: exponents are moved to their place, and made up for."""
    bits = halves.astype(np.int32)
    bits <<= 13
    # Without the copies of the sign.
    bits &= np.int32(-0x70002000)
    numbers = bits.view(np.float32)
    numbers *= np.float32(2.0**112)
    return numbers

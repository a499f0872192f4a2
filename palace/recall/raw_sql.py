"""Raw SQL: arrays of numbers to the database and back, and what is done with them."""

from __future__ import annotations

from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isolation.raw_sql import fetch_rows

# The NumPy names of smallint, integer, bigint, real and double precision.
Kind = Literal["i2", "i4", "i8", "f4", "f8"]
Keys = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]
# The bits of half-precision numbers.
Halves = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float32]


def array_literal(keys: npt.NDArray[np.int64]) -> str:
    """Keys as a Postgres array literal: psycopg would adapt each key separately."""
    return f"{{{','.join(map(str, keys.tolist()))}}}"


def decode_array(data: bytes | None, kind: Kind) -> npt.NDArray[Any]:
    """Decode a binary Postgres array, many times faster than through a Python list.

    Args:
        data: `substring(array_send(…) FROM 21)` of a one-dimensional array without nulls: its
            binary format without the header of 20 bytes. Several may be concatenated.

    Raises:
        ValueError: the array is of another kind, or has nulls.
    """
    # Each number follows its length in bytes, both big-endian.
    rows = np.frombuffer(data or b"", np.dtype([("length", ">i4"), ("number", f">{kind}")]))
    if (rows["length"] != int(kind[1:])).any():
        raise ValueError(f"These are no numbers of kind {kind}, or some are null.")
    return rows["number"].astype(kind)


def union(*parts: Keys) -> Keys:
    """The distinct keys of all parts, ascending.

    For a few hundred keys many times faster than `np.unique`, which hashes them.
    """
    keys = np.concatenate(parts)
    keys.sort()
    return keys[starts_new(keys)] if len(keys) > 1 else keys


def starts_new(ascending: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which of the values differ from the one before."""
    is_new = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
    return is_new


NO_KEYS: Keys = np.empty(0, np.int64)


def isin_few(keys: Keys, few: Keys) -> npt.NDArray[np.bool_]:
    """Like `isin_sorted`, with both ascending and `few` short; faster."""
    found = np.zeros(len(keys), dtype=np.bool_)
    if len(keys) and len(few):
        places = np.minimum(keys.searchsorted(few), len(keys) - 1)
        found[places[keys[places] == few]] = True
    return found


def isin_sorted(keys: Keys, ascending: Keys) -> npt.NDArray[np.bool_]:
    """Which of the keys are in `ascending`; like `np.isin`, but faster."""
    if not len(ascending):
        return np.zeros(len(keys), dtype=np.bool_)
    places = np.minimum(ascending.searchsorted(keys), len(ascending) - 1)
    found: npt.NDArray[np.bool_] = ascending[places] == keys
    return found


class PassageOffsets:
    """Maps drawers to their rows in the passage arrays.

    Attributes:
        ordinals: Of each passage; passages are ordered by drawer, then by ordinal.
        starts: Row of each drawer's first passage.
        counts: Number of passages per drawer.
        drawers: Keys of the drawers with passages, ascending.
    """

    def __init__(self, passages: Keys) -> None:
        """
        Args:
            passages: `drawer << 16 | ordinal`, ascending.
        """
        owners = passages >> 16
        is_first = starts_new(owners)
        self.ordinals = (passages & 0xFFFF).astype(np.int16)
        self.starts: Rows = np.flatnonzero(is_first)
        self.counts: Rows = np.diff(np.r_[self.starts, len(owners)])
        self.drawers: Keys = owners[self.starts]

    def rows_of(self, drawers: Keys) -> Rows:
        """The rows of these drawers, which ascend; those without passages have none."""
        if not len(self.drawers):
            return NO_KEYS
        places = np.minimum(self.drawers.searchsorted(drawers), len(self.drawers) - 1)
        places = places[self.drawers[places] == drawers]
        starts, counts = self.starts[places], self.counts[places]
        # Of each drawer the first row, as often as it has rows, and how many come before each.
        ends = counts.cumsum()
        return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


# Of so many sums pgvector adds one product in turn to each, and then the halves to each other.
_LANES = 8
# Both aggregates have the same order; vectors are without the length header.
_VECTORS = (
    "SELECT substring(array_send(array_agg(drawer_id << 16 | ordinal)) FROM 21),"
    " string_agg(substring(halfvec_send(embedding) FROM 5), ''::bytea)"
    " FROM palace_passage WHERE palace_id = %s AND space_id = %s AND embedding IS NOT NULL"
    " AND drawer_id = ANY(%s::bigint[])"
)


class VectorStore:
    """Vectors of a large palace's passages, in half precision, read when a question first needs
    them: most are far from all that is ever asked. Thread-safe.
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

    def __len__(self) -> int:
        return len(self._passages)

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
            places = self._passages.searchsorted(passages)
            is_here = self._passages.take(places, mode="clip") == passages if self else places < 0
            here = passages[is_here]
            found = self._halves[self._rows[places[is_here]]]
        if len(here) == len(passages):
            return here, found
        read, halves = self._read(passages[~is_here])
        self._add(read, halves, revision)
        together = np.concatenate([here, read])
        order = together.argsort(kind="stable")
        return together[order], np.concatenate([found, halves])[order]

    def forget(self, drawers: Keys, revision: int) -> None:
        """Forget the passages of drawers that were changed.

        Args:
            drawers: Keys, ascending.
            revision: Of the last change; what was read before it is not stored any more.
        """
        with self._lock:
            stay = ~isin_sorted(self._passages >> 16, drawers)
            self._passages, self._rows = self._passages[stay], self._rows[stay]
            self._revision = revision

    def _read(self, passages: Keys) -> tuple[Keys, Halves]:
        drawers = array_literal(union(passages >> 16))
        given = [self._palace_id, self._space_id, drawers]
        [(sent, vectors)] = fetch_rows(_VECTORS, given, prepared=True)
        found = decode_array(sent, "i8")
        halves = np.frombuffer(vectors or b"", ">i2").reshape(len(found), -1)
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
            end = self._filled + len(passages)
            self._halves[self._filled : end] = halves
            together = np.concatenate([self._passages, passages])
            order = together.argsort(kind="stable")
            rows = np.concatenate([self._rows, np.arange(self._filled, end)])
            self._passages, self._rows, self._filled = together[order], rows[order], end


def inner_products(halves: Halves, vector: Floats) -> Floats:
    """The inner product of the vector with each row, to the bit as pgvector computes it on a
    processor with AVX: so it does not matter to a score where it was computed.

    Args:
        vector: Of half-precision numbers, whose products with others float32 holds exactly.
    """
    products = _floats(halves)
    products *= vector
    whole = products.shape[1] // _LANES * _LANES
    sums = np.zeros((len(products), _LANES), np.float32)
    for first in range(0, whole, _LANES):
        sums += products[:, first : first + _LANES]
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    result: Floats = sums[:, 0]
    for place in range(whole, products.shape[1]):
        result = result + products[:, place]
    return result


def _floats(halves: Halves) -> Floats:
    """Several times as fast as NumPy: exponents are moved to their place, and made up for."""
    bits = halves.astype(np.int32)
    bits <<= 13
    # Without the copies of the sign.
    bits &= np.int32(-0x70002000)
    numbers = bits.view(np.float32)
    numbers *= np.float32(2.0**112)
    return numbers

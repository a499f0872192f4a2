"""Raw SQL: arrays of numbers to the database and back, and what is done with them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

# The NumPy names of smallint, integer, bigint, real and double precision.
Kind = Literal["i2", "i4", "i8", "f4", "f8"]
Keys = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]


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

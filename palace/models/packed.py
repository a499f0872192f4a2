"""Arrays of numbers in one column, as bytes that NumPy reads directly.

An array column is sent number by number, which takes longer than to score them all.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from django.db import models

if TYPE_CHECKING:
    Field = models.Field[Any, Any]
else:
    Field = models.Field

Kind = Literal["i2", "i8"]
_DECIMALS = 10_000
# Bytes of a table that is compressed: the database compresses a row with a shorter one as well, in
# less time.
_LONG = 1000


def pack(numbers: Sequence[int] | npt.NDArray[Any], kind: Kind) -> bytes:
    """Pack numbers, big-endian as in Postgres.

    Args:
        kind: NumPy's name of smallint or bigint.
    """
    return np.asarray(numbers, dtype=f">{kind}").tobytes()


def unpack(data: bytes | None, kind: Kind) -> npt.NDArray[Any]:
    """Unpack numbers; concatenated results of `pack` are read as one."""
    return np.frombuffer(data or b"", f">{kind}").astype(kind)


def pack_table(numbers: npt.NDArray[np.float64]) -> str:
    """A table of numbers, to four decimals, for a place in JSON.

    The database parses and stores one string many times faster than each number.
    """
    rounded = np.rint(numbers * _DECIMALS).astype(">i4")
    level = 1 if rounded.nbytes >= _LONG else 0
    return b64encode(zlib.compress(rounded.tobytes(), level=level)).decode()


def unpack_table(packed: str, rows: int) -> list[list[float]]:
    """The opposite of `pack_table`."""
    numbers = np.frombuffer(zlib.decompress(b64decode(packed)), ">i4")
    table: list[list[float]] = (numbers.reshape(rows, -1) / _DECIMALS).tolist() if rows else []
    return table


class PackedField(Field):
    """A one-dimensional NumPy array of whole numbers without nulls."""

    def __init__(self, *args: Any, kind: Kind, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind: Kind = kind

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, {**kwargs, "kind": self.kind}

    def db_type(self, connection: Any) -> str:
        return "bytea"

    def from_db_value(self, value: bytes | None, expression: Any, connection: Any) -> Any:
        return None if value is None else unpack(bytes(value), self.kind)

    def get_prep_value(self, value: Any) -> bytes | None:
        return value if value is None or isinstance(value, bytes) else pack(value, self.kind)


class BitsField(Field):
    """A bit string of any length."""

    def db_type(self, connection: Any) -> str:
        return "bit varying"

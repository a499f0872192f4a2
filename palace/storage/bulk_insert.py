"""Insert many rows in one statement. COPY does not work with row-level security."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import psycopg
from django.db import connection, models
from psycopg.abc import Buffer
from psycopg.abc import Transformer as AdaptContext
from psycopg.adapt import Dumper, PyFormat
from psycopg.adapt import Transformer as Adapter
from psycopg.pq import Format

from isolation import row_access

# The most rows of a statement: each is in memory several times.
BATCH = 2000


class _Binary(bytes):
    """A value as the server's binary format has it, of whatever type the statement casts it to."""


class _BinaryDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: Any) -> Buffer | None:
        return bytes(obj)


def insert_rows(
    model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Insert rows; unlike `bulk_create`, this keeps given creation times."""
    statement = _statement(model, tuple(columns))
    left = iter(rows)
    while some := list(islice(left, BATCH)):
        with connection.cursor() as cursor:
            # Each column is an array of what its values are as text, read by the column's type.
            texts = Adapter(cursor.connection)
            cursor.execute(statement, [_array(texts, column) for column in zip(*some, strict=True)])


@cache
def _statement(model: type[models.Model], columns: tuple[str, ...]) -> str:
    quoted = connection.ops.quote_name
    fields = {field.column: field for field in model._meta.concrete_fields}
    # Without a length: to read a longer text as such would cut it, where the column refuses it.
    types = [re.sub(r"\([^)]*\)", "", str(fields[name].db_type(connection))) for name in columns]
    named = ", ".join(map(quoted, columns))
    read = ", ".join(f"v{place}::{kind}" for place, kind in enumerate(types))
    given = ", ".join("%s::text[]" for _ in columns)
    values = ", ".join(f"v{place}" for place in range(len(columns)))
    table = quoted(model._meta.db_table)
    return f"INSERT INTO {table} ({named}) SELECT {read} FROM unnest({given}) AS t ({values})"  # noqa: S608 - names of our own tables.


def _array(texts: AdaptContext, values: Iterable[object]) -> str:
    return f"{{{','.join(_element(texts, value) for value in values)}}}"


def _element(texts: AdaptContext, value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        text = value
    else:
        dumped = texts.get_dumper(value, PyFormat.TEXT).dump(value)
        if dumped is None:
            return "NULL"
        text = bytes(dumped).decode()
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def insert_packed(statement: str, parameters: Sequence[object]) -> None:
    """Run a statement whose parameters are arrays from `packed_*`, or plain values."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        row_access.apply(connection.connection)
        cursor.adapters.register_dumper(_Binary, _BinaryDumper)
        cursor.execute(statement, parameters)


def packed_numbers(
    numbers: Sequence[int] | npt.NDArray[Any], kind: Literal["i2", "i4", "i8"]
) -> _Binary:
    """An array of numbers, all made at once: written as text each would be read by itself.

    Args:
        kind: As NumPy calls smallint, integer and bigint.
    """
    rows = np.zeros(len(numbers), np.dtype([("length", ">i4"), ("number", f">{kind}")]))
    rows["length"] = np.dtype(kind).itemsize
    rows["number"] = numbers
    return packed_rows(rows, _OIDS[kind])


def packed_values(values: Sequence[bytes], kind: Literal["bytea", "text"]) -> _Binary:
    parts = (part for value in values for part in (len(value).to_bytes(4, "big"), value))
    return _Binary(_head(len(values), _OIDS[kind]) + b"".join(parts))


def packed_rows(rows: npt.NDArray[Any], type_oid: int = 0) -> _Binary:
    """An array of elements that are written out already, each with its length before it.

    Args:
        type_oid: Of the elements; 0 for a type that an extension brings.
    """
    return _Binary(_head(len(rows), type_oid) + rows.tobytes())


# As the server numbers its own types.
_OIDS = {"bytea": 17, "i8": 20, "i2": 21, "i4": 23, "text": 25}


def _head(count: int, type_oid: int) -> bytes:
    """One dimension without nulls, which counts from 1."""
    return struct.pack(">iiIii", 1, 0, type_oid, count, 1)

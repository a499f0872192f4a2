"""Raw SQL: binary rows, numeric arrays, and model instances built from rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.models.base import ModelState

from isolation import row_access
from palace.recall.binary_statements import BinaryStatements

# The NumPy names of smallint, integer, bigint, real and double precision.
Kind = Literal["i2", "i4", "i8", "f4", "f8"]
Keys = npt.NDArray[np.int64]
Model = TypeVar("Model", bound=models.Model)
NO_NAMES: frozenset[str] = frozenset()


def fetch_rows(
    sql: str, parameters: Sequence[Any] | Mapping[str, Any], *, prepared: bool = False
) -> list[tuple[Any, ...]]:
    """Fetch all rows of a query in binary format.

    Args:
        prepared: Let the server keep the statement's plan. Only for statements whose best plan
            does not depend on the parameters; those of others are part of their text, so that they
            are planned for these values.
    """
    own = connections[DEFAULT_DB_ALIAS]  # `connection` looks itself up each time it is used.
    own.ensure_connection()
    # Django's cursors bind parameters on the client, which excludes the binary format.
    row_access.apply(own.connection)
    with own.wrap_database_errors:
        statements = BinaryStatements.of(own.connection)
        if prepared:
            return statements.fetch(sql, parameters)
        text = psycopg.ClientCursor(own.connection).mogrify(sql, parameters)
        return statements.fetch_once(text)


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


def columns(model: type[models.Model], table: str, without: frozenset[str] = NO_NAMES) -> str:
    """The columns of the model for a SELECT list, to be read by `read_instance`.

    Args:
        table: The table's alias in the query.
        without: Names of attributes that are left out.
    """
    return ", ".join(_selected(field, table) for field in _fields(model, without))


def _selected(field: models.Field[Any, Any], table: str) -> str:
    """The column; null for an empty JSON object, which takes longer to read than a row of text."""
    column = f'{table}."{field.column}"'
    return f"nullif({column}, '{{}}')" if _is_object(field) else column


def _is_object(field: models.Field[Any, Any]) -> bool:
    return isinstance(field, models.JSONField) and field.default is dict and not field.null


def read_instance(
    model: type[Model], values: Iterator[Any], without: frozenset[str] = NO_NAMES
) -> Model | None:
    """Build an instance from the next values of a binary row; None if a join found no row.

    Composing a query with the ORM takes longer than Postgres needs to answer it, and a model's
    constructor sets its fields one by one: this one sends no signals either. What is left out is
    read from the database if somebody asks for it.
    """
    names, converted, objects = _reader(model, without)
    own = list(islice(values, len(names)))
    if own[0] is None:
        return None
    for place, convert in converted:
        own[place] = convert(own[place], None, connection)
    for place in objects:
        own[place] = own[place] or {}
    return _instance(model, zip(names, own, strict=True), is_stored=True)


def default_instance(model: type[Model], **values: Any) -> Model:
    """Build an instance that is not stored, with the default of each field that is not given.

    The constructor looks up the defaults anew each time, which takes a tenth of a millisecond.
    """
    constant, made = _defaults(model)
    fresh = {name: make() for name, make in made.items()}
    return _instance(model, {**constant, **fresh, **values}.items(), is_stored=False)


def _instance(model: type[Model], values: Iterable[tuple[str, Any]], *, is_stored: bool) -> Model:
    instance = model.__new__(model)
    instance.__dict__.update(values)
    instance._state = ModelState()
    instance._state.adding = not is_stored
    instance._state.db = DEFAULT_DB_ALIAS if is_stored else None
    return instance


@cache
def _defaults(
    model: type[models.Model],
) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """By attribute: the defaults, and what makes those that are made anew, such as lists."""
    fields = model._meta.concrete_fields
    made = {field.attname: field.get_default for field in fields if callable(field.default)}
    constant = {field.attname: field.get_default() for field in fields if field.attname not in made}
    return constant, made


def width(model: type[models.Model], without: frozenset[str] = NO_NAMES) -> int:
    """The number of the model's columns."""
    return len(_fields(model, without))


@cache
def _reader(
    model: type[models.Model], without: frozenset[str]
) -> tuple[list[str], list[tuple[int, Any]], list[int]]:
    """The names of the model's attributes, the places whose values a field converts, and those of
    JSON objects. A binary row has JSON decoded.
    """
    fields = _fields(model, without)
    converted = [
        (place, field.from_db_value)
        for place, field in enumerate(fields)
        if hasattr(field, "from_db_value") and not isinstance(field, models.JSONField)
    ]
    objects = [place for place, field in enumerate(fields) if _is_object(field)]
    return [field.attname for field in fields], converted, objects


def _fields(model: type[models.Model], without: frozenset[str]) -> Sequence[models.Field[Any, Any]]:
    return [field for field in model._meta.concrete_fields if field.attname not in without]

"""Raw SQL: statements with binary results, run by libpq itself, and model instances of their rows.

A cursor of psycopg takes several times as long: it makes new converters for each statement,
and waits in Python. Here a connection keeps its converters and its prepared statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count, islice
from typing import Any, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.models.base import ModelState
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer

from isolation import row_access
from isolation.row_access import run

_BINARY = pq.Format.BINARY
# As psycopg has it: "%s" or "%(name)s"; "%%" is a percent sign.
_PLACE = re.compile(r"%(?:%|s|\((\w+)\)s)")

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


class BinaryStatements:
    """Runs statements on one connection, and fetches their rows in binary format."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._transformer = Transformer(connection)
        self._names: dict[bytes, bytes] = {}
        self._numbers = count()

    @classmethod
    def of(cls, connection: psycopg.Connection[Any]) -> BinaryStatements:
        found: BinaryStatements | None = getattr(connection, "_loci_statements", None)
        if found is None:
            found = cls(connection)
            setattr(connection, "_loci_statements", found)  # noqa: B010 - as in `row_access`.
        return found

    def fetch(
        self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """Run the statement, prepared at its first use, and fetch its rows.

        Raises:
            psycopg.Error: as a cursor would.
        """
        statement, names = _numbered(sql)
        given = (
            [parameters[name] for name in names]
            if isinstance(parameters, Mapping)
            else list(parameters)
        )
        # As text of no type: the server infers them, so that no value needs another statement.
        formats = [PyFormat.TEXT] * len(given)
        values: Sequence[Any] = self._transformer.dump_sequence(given, formats)
        try:
            return self._run_prepared(statement, values)
        except psycopg.errors.FeatureNotSupported:
            # Since it was prepared, a migration has changed the type of one of its columns.
            self._names.pop(statement, None)
            if self._connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                raise  # The transaction has failed; the next one prepares it again.
            return self._run_prepared(statement, values)

    def _run_prepared(self, statement: bytes, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        name, server = self._prepare(statement), self._connection.pgconn
        return self._rows(
            run(
                self._connection,
                lambda: server.exec_prepared(name, values, result_format=_BINARY),
            )
        )

    def fetch_once(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement without parameters that is not prepared, and fetch its rows."""
        statement, server = sql.encode(), self._connection.pgconn
        return self._rows(
            run(
                self._connection,
                lambda: server.exec_params(statement, None, result_format=_BINARY),
            )
        )

    def _prepare(self, statement: bytes) -> bytes:
        """The statement's name at the server."""
        name = self._names.get(statement)
        if name is None:
            name = b"loci_%d" % next(self._numbers)
            run(self._connection, lambda: self._connection.pgconn.prepare(name, statement))
            self._names[statement] = name
        return name

    def _rows(self, result: pq.abc.PGresult) -> list[tuple[Any, ...]]:
        self._transformer.set_pgresult(result, set_loaders=True, format=_BINARY)
        try:
            return self._transformer.load_rows(0, result.ntuples, tuple)
        finally:
            self._transformer.set_pgresult(None)  # Else its rows stay until the next statement.


@cache
def _numbered(sql: str) -> tuple[bytes, list[str]]:
    """The statement with places as the server writes them, and the names of its parameters."""
    names: dict[str, int] = {}
    numbers = count(1)

    def place(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        name = found[1]
        return f"${names.setdefault(name, len(names) + 1) if name else next(numbers)}"

    return _PLACE.sub(place, sql).encode(), list(names)


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

    The constructor looks up the defaults each time, which takes a tenth of a millisecond.
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
    """By attribute: the defaults, and what makes those that each instance has of its own."""
    fields = model._meta.concrete_fields
    made = {field.attname: field.get_default for field in fields if callable(field.default)}
    constant = {field.attname: field.get_default() for field in fields if field.attname not in made}
    return constant, made


# A model that a statement selects: its table's alias there, and what is left out of it.
Part = tuple[type[models.Model], str, frozenset[str]]


def all_but(model: type[models.Model], names: str) -> frozenset[str]:
    """The attributes that a statement leaves out, but for those it names."""
    return frozenset({field.attname for field in model._meta.concrete_fields} - {*names.split()})


def columns_of(parts: Iterable[Part]) -> str:
    return ", ".join(columns(*part) for part in parts)


def fetch_instances(
    sql: str, parameters: Sequence[Any] | Mapping[str, Any], parts: Sequence[Part]
) -> Iterator[list[Any]]:
    """Run a prepared statement that selects `columns_of` the parts: an instance of each by row."""
    for row in fetch_rows(sql, parameters, prepared=True):
        values = iter(row)
        yield [read_instance(model, values, without) for model, _, without in parts]


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

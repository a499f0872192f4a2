"""Statements with binary results, run by libpq itself.

A cursor of psycopg takes several times as long: it makes its converters anew for each statement,
and waits in Python. Here a connection keeps its converters and its prepared statements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer

from isolation.row_access import run

_BINARY = pq.Format.BINARY
# As psycopg has it: "%s" or "%(name)s"; "%%" is a percent sign.
_PLACE = re.compile(r"%(?:%|s|\((\w+)\)s)")


class BinaryStatements:
    """Runs statements on one connection, and fetches their rows in binary format."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._transformer = Transformer(connection)
        self._names: dict[bytes, bytes] = {}

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
            name = b"loci_%d" % len(self._names)
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
    count = 0

    def place(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] == "%%":
            return "%"
        count += 1
        name = found[1]
        return f"${names.setdefault(name, len(names) + 1) if name else count}"

    return _PLACE.sub(place, sql).encode(), list(names)

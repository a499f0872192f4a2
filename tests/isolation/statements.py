"""The statements that the product sends, and to which machines they would go.

The planner says so, of copies of the tables, each cut into parts by the column by which Citus
would spread it over machines. Postgres leaves out the other parts where Citus leaves out the other
machines: where a condition gives that column a value, its own or by a join.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from unittest.mock import patch

import psycopg
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from config.management.commands.citus_script import PALACES, preparation, references, spread
from isolation import row_access
from isolation.raw_sql import BinaryStatements
from palace.storage.bulk_insert import _Binary

MACHINES = 4
SCHEMA = "machines"
_PLANNED = re.compile(r"[\s(]*(?:SELECT|INSERT|UPDATE|DELETE|WITH|MERGE)\b", re.IGNORECASE)
_VALUE = re.compile(r"'(?:[^']|'')*'|\b\d+\b")
_GIVEN_PALACE = re.compile(r"(?:\w+\.)?palace_id|'?\d+'?(?:::bigint)?")


@contextmanager
def collected(*, sweeps: bool = False) -> Iterator[dict[str, str]]:
    """The statements of doors, by their text, each with its values when it was first sent.

    What a test does itself opens no palace and no account.

    Args:
        sweeps: All statements, also those that look over all palaces.
    """
    found: dict[str, str] = {}

    def note(server, sql, parameters=None):
        if sweeps or row_access.current().role in (row_access.PALACE, row_access.PERSON):
            text = str(sql)
            # Where the values are part of the text, it is another one each time.
            name = _VALUE.sub("?", text) if parameters is None else text
            if name not in found and _PLANNED.match(text):
                found[name] = psycopg.ClientCursor(server).mogrify(text, _readable(parameters))

    with ExitStack() as spied:
        for cursor in (psycopg.Cursor, psycopg.ServerCursor):
            spied.enter_context(_noted(cursor, "execute", attrgetter("connection"), note))
        for name in ("fetch", "fetch_once"):
            spied.enter_context(_noted(BinaryStatements, name, attrgetter("_connection"), note))
        yield found


def _noted(owner, method, server_of, note):
    original = getattr(owner, method)

    def run(self, sql, *given, **named):
        parameters = named["params"] if "params" in named else next(iter(given), None)
        note(server_of(self), sql, parameters)
        return original(self, sql, *given, **named)

    return patch.object(owner, method, run)


def _readable(parameters: Any) -> Any:
    """Arrays in the binary format cannot be written into a statement; no palace is in one."""
    if parameters is None:
        return None
    if isinstance(parameters, Mapping):
        return {name: _plain(value) for name, value in parameters.items()}
    return [_plain(value) for value in parameters]


def _plain(value: Any) -> Any:
    return None if isinstance(value, _Binary) else value


@dataclass(frozen=True, slots=True)
class Route:
    """Where a statement goes.

    Attributes:
        machines: Numbers of those that have rows of the palaces it reads and changes.
        beside: Tables that are in one place only, and read or changed together with such rows.
    """

    machines: set[int]
    beside: set[str]


def routes(statements: Mapping[str, str]) -> dict[str, Route]:
    """The route of each statement, by its text."""
    with connection.cursor() as cursor:
        everywhere = references(cursor)
    with spread_tables() as cursor:
        return {name: _route(cursor, sql, everywhere) for name, sql in statements.items()}


def at_several(statements: Mapping[str, str]) -> list[str]:
    """The statements that do not go to one machine alone."""
    return [name for name, route in routes(statements).items() if len(route.machines) > 1]


def prepare_keys(cursor: CursorWrapper) -> None:
    """Give the tables the keys with which they can be spread, until the transaction ends."""
    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # What waits forbids changes of a table.
    for statement in preparation(cursor):
        cursor.execute(statement)
    cursor.execute("SET CONSTRAINTS ALL DEFERRED")


@contextmanager
def spread_tables() -> Iterator[CursorWrapper]:
    """Within the block, each table of palaces is a copy without rows, cut into parts."""
    with transaction.atomic(), connection.cursor() as cursor:
        prepare_keys(cursor)
        cursor.execute(f"CREATE SCHEMA {SCHEMA}")
        for table, column in spread(cursor).items():
            whole = f'{SCHEMA}."{table}"'
            cursor.execute(
                f'CREATE TABLE {whole} (LIKE "{table}" INCLUDING ALL) PARTITION BY HASH ({column})'
            )
            for machine in range(MACHINES):
                cursor.execute(
                    f'CREATE TABLE {SCHEMA}."{table}__{machine}" PARTITION OF {whole}'
                    f" FOR VALUES WITH (MODULUS {MACHINES}, REMAINDER {machine})"
                )
        cursor.execute(f"SET LOCAL search_path = {SCHEMA}, public")
        yield cursor
        transaction.set_rollback(True)


def _route(cursor: CursorWrapper, sql: str, everywhere: set[str]) -> Route:
    cursor.execute(f"EXPLAIN (COSTS OFF, VERBOSE, FORMAT JSON) {sql}")
    [([top],)] = cursor.fetchall()
    route = Route(set(), set())
    for node in _nodes(top["Plan"]):
        table, schema = node.get("Relation Name", ""), node.get("Schema")
        name, _, machine = table.partition("__")
        if schema == SCHEMA and machine:
            route.machines.add(int(machine))
        elif schema == SCHEMA and node["Operation"] == "Insert":
            route.machines.update(_of_new_rows(cursor, sql, node))
        elif schema == "public" and name not in everywhere:
            route.beside.add(name)
    return route if route.machines else Route(set(), set())


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _of_new_rows(cursor: CursorWrapper, sql: str, node: dict[str, Any]) -> Iterable[int]:
    """The machines that get new rows. The plan does not say: the statement is run on the copies."""
    table = f'{SCHEMA}."{node["Relation Name"]}"'
    before = transaction.savepoint()
    cursor.execute(sql)
    cursor.execute(f"SELECT DISTINCT tableoid::regclass::text FROM {table}")  # noqa: S608
    landed = {int(part.strip('"').rpartition("__")[2]) for (part,) in cursor.fetchall()}
    transaction.savepoint_rollback(before)
    if landed:
        return landed
    # The rows come from tables, which are empty here: their palace, or a given one, must go along.
    cursor.execute(
        "SELECT attnum - 1 FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s",
        [table, "id" if node["Relation Name"] == PALACES else "palace_id"],
    )
    [(place,)] = cursor.fetchall()
    [source] = node["Plans"]
    return () if _GIVEN_PALACE.fullmatch(source["Output"][place]) else range(MACHINES)

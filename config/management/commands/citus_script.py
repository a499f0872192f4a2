"""`manage.py citus_script`: the statements that spread the tables over machines with Citus.

They are generated from the existing tables, so that none is missing. Citus keeps rows unique only
within the column by which it spreads them, so each key gets the palace first. It has no references
from a table in one place to one that is spread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

from config.management.base import LociCommand

PALACES = "palace_palace"
_BY_PALACE = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attname = 'palace_id' AND a.attnotnull AND c.relkind = 'r'
    AND c.relnamespace = current_schema()::regnamespace ORDER BY 1
"""
_FOREIGN = """
SELECT k.conrelid::regclass::text, k.conname, k.confrelid::regclass::text, a.attname,
    pg_get_constraintdef(k.oid)
FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
WHERE k.contype = 'f' AND cardinality(k.conkey) = 1
    AND k.connamespace = current_schema()::regnamespace ORDER BY 1, 2
"""
_UNIQUE = """
SELECT i.indrelid::regclass::text, x.relname, coalesce(k.contype, 'i'), pg_get_indexdef(x.oid),
    array(SELECT a.attname FROM unnest(i.indkey) n JOIN pg_attribute a
        ON a.attrelid = i.indrelid AND a.attnum = n)
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u')
WHERE i.indisunique AND x.relnamespace = current_schema()::regnamespace ORDER BY 1, 2
"""


class Command(LociCommand):
    help = (
        "Print the statements that spread the tables over machines with Citus, palace by palace. "
        f"Nothing is run. Read {settings.DOCS_PAGE.format('scaling')} first: it says what was "
        "never tried."
    )

    def handle(self, **options: Any) -> None:
        with connection.cursor() as cursor:
            for statement in (*preparation(cursor), *distribution(cursor)):
                self.stdout.write(f"{statement};")


def spread(cursor: CursorWrapper) -> dict[str, str]:
    """Each table that is spread over machines, and the column by which; that of palaces first."""
    return {PALACES: "id"} | {table: "palace_id" for (table,) in _rows(cursor, _BY_PALACE)}


def preparation(cursor: CursorWrapper) -> Iterator[str]:
    """Statements for plain Postgres: keys and references of a palace's tables get the palace."""
    tables = spread(cursor)
    foreign = [
        (table, name, to, column, definition)
        for table, name, to, column, definition in _rows(cursor, _FOREIGN)
        # Those to the palace itself have it already.
        if to in tables and (to != PALACES or table not in tables)
    ]
    for table, name, *_ in foreign:
        yield f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'
    for table, name, kind, definition, columns in _rows(cursor, _UNIQUE):
        if table in tables and tables[table] not in columns:
            yield from _with_palace(table, tables[table], name, kind, definition, columns)
    for table, name, to, column, definition in foreign:
        if table in tables:
            rest = (
                definition.partition(")")[2]
                .partition(")")[2]
                .replace(" SET NULL", f" SET NULL ({column})")
            )
            yield (
                f'ALTER TABLE {table} ADD CONSTRAINT "{name}" FOREIGN KEY (palace_id, {column}) '
                f"REFERENCES {to} (palace_id, id){rest}"
            )


def references(cursor: CursorWrapper) -> set[str]:
    """The tables of which each machine has a copy."""
    tables = spread(cursor)
    return {to for table, _, to, *_ in _rows(cursor, _FOREIGN) if table in tables} - tables.keys()


def distribution(cursor: CursorWrapper) -> Iterator[str]:
    """Statements that only Citus understands."""
    yield "CREATE EXTENSION IF NOT EXISTS citus"
    for table in sorted(references(cursor)):
        yield f"SELECT create_reference_table('{table}')"
    for table, column in spread(cursor).items():
        beside = "" if table == PALACES else f", colocate_with => '{PALACES}'"
        yield f"SELECT create_distributed_table('{table}', '{column}'{beside})"


def _with_palace(
    table: str, palace: str, name: str, kind: str, definition: str, columns: list[str]
) -> Iterator[str]:
    if kind == "i":
        yield f'DROP INDEX "{name}"'
        head, _, tail = definition.partition("(")
        yield f"{head}({palace}, {tail}"
        return
    words = "PRIMARY KEY" if kind == "p" else "UNIQUE"
    yield f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'
    keys = ", ".join([palace, *columns])
    yield f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {words} ({keys})'


def _rows(cursor: CursorWrapper, statement: str) -> list[tuple[Any, ...]]:
    cursor.execute(statement)
    return list(cursor.fetchall())

"""Which tables a statement touches without naming the palace: read from its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from django.apps import apps
from django.db import connection

from isolation import row_access

PALACES = "palace_palace"
_TABLE = re.compile(
    r'\b(?:FROM|JOIN|UPDATE|INTO|USING)\s+(?:ONLY\s+)?"?(?P<table>[a-z]\w*)"?'
    r'(?:\s+(?:AS\s+)?"?(?P<alias>(?!(?:ON|WHERE|SET|USING|ORDER|GROUP|LIMIT|INNER|LEFT|RIGHT|FULL|'
    r"CROSS|JOIN|VALUES|SELECT|FOR|RETURNING|UNION|EXCEPT|NATURAL|OFFSET|HAVING|WINDOW|LATERAL|AS|"
    r'CONFLICT|DEFAULT|TABLESAMPLE|FROM|AND)\b)[A-Za-z]\w*)"?)?',
    re.IGNORECASE,
)
_COMMA = re.compile(r',\s*"?(?P<table>[a-z]\w*)"?\s+"?(?P<alias>[a-z]\w*)"?', re.IGNORECASE)
_INSERTED = re.compile(r'INSERT INTO\s+"?(\w+)"?(?:\s+AS\s+\w+)?\s*\(([^)]*)\)', re.IGNORECASE)
# The palace compared with a value, not with a column of another table.
_VALUE = r"(?:%|\d|\'|ANY\b|\(\s*(?:%|\d|\'|SELECT\b))"
_GIVEN = re.compile(
    rf'palace_id"?\s*\)?\s*(?:=|IN)\s*{_VALUE}|%\S*\s*=\s*\(?[\w".]*palace_id'
    rf'|palace_palace"?(?:\s+"?\w+"?)?(?:\."?id"?|\s+WHERE\s+id)\s*(?:=|IN)\s*{_VALUE}|INSERT INTO',
    re.IGNORECASE,
)


def distributed() -> dict[str, str]:
    """Each table that would be spread over machines, and the column by which."""
    tables = {PALACES: "id"}
    for model in apps.get_models(include_auto_created=True):
        columns = {field.column for field in model._meta.local_fields}
        if "palace_id" in columns:
            tables[model._meta.db_table] = "palace_id"
    return tables


@contextmanager
def collected(*, sweeps: bool = False) -> Iterator[set[str]]:
    """The statements of doors: what a test does itself opens no palace and no account.

    Args:
        sweeps: All statements, also those that look over all palaces.
    """
    found: set[str] = set()

    def note(execute, sql, params, many, context):
        if sweeps or row_access.current().role in (row_access.PALACE, row_access.PERSON):
            found.add(str(sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found


def tables_without_palace(sql: str, columns: dict[str, str]) -> set[str]:
    """Tables that are spread over machines and not held to one palace by a condition."""
    inserted = dict(_INSERTED.findall(sql))
    missing = set()
    for match in (*_TABLE.finditer(sql), *_COMMA.finditer(sql)):
        table, alias = match["table"], match["alias"] or match["table"]
        column = columns.get(table)
        if column is None:
            continue
        if table in inserted and column in inserted[table]:
            continue
        if not _is_held(sql, alias, column, named=match["alias"] is not None):
            missing.add(table)
    return missing


def is_of_given_palace(sql: str, columns: dict[str, str]) -> bool:
    """Whether a palace that was given stands in it, if it touches a table of palaces at all."""
    tables = {match["table"] for match in (*_TABLE.finditer(sql), *_COMMA.finditer(sql))}
    return not tables & columns.keys() or bool(_GIVEN.search(sql))


def _is_held(sql: str, alias: str, column: str, *, named: bool) -> bool:
    of_alias = rf'"?\b{alias}"?\."?{column}"?'
    own = rf'(?<![.\w"])"?{column}"?' if not named else of_alias
    compared = r"\s*\)?\s*(?:=|IN\b)"
    return bool(
        re.search(rf"(?:{of_alias}|{own}){compared}", sql, re.IGNORECASE)
        or re.search(rf"=\s*\(?\s*(?:{of_alias}|{own})(?!\w)", sql, re.IGNORECASE)
        or re.search(rf"\b(?:JOIN)[^()]*\bUSING\s*\([^)]*\b{column}\b", sql, re.IGNORECASE)
    )

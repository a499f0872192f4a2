"""Palaces that many tests begin with: mined once a process, then copied row by row.

Mining thirty messages asks the database some four hundred times; copying what came of it, twenty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.apps import apps
from django.db import connection, transaction

from language.transcripts import Transcript
from llm.models import CachedEmbedding
from palace.mining.pipeline import mine
from palace.models import Palace
from palace.storage.indexing.spaces import active_space


@dataclass(frozen=True)
class _Rows:
    """A table's rows as COPY writes them; those of a palace begin with its key and the space's."""

    table: str
    columns: str
    data: bytes
    prefix: bytes


@dataclass(frozen=True)
class _Copy:
    counters: dict[str, object]
    rows: list[_Rows]
    sequences: dict[str, int]


_copies: dict[str, _Copy] = {}


def furnish(palace: Palace, name: str, build: Callable[[Palace], object]) -> Palace:
    """The palace after `build(palace)`. It must be empty, and be all there is in the database.

    What it had before would be copied too, into the palaces of all later tests.

    Not copied: what is no palace's, like the usage of models.

    Args:
        name: Of what is built: two that are equal build the same.
    """
    space = active_space()
    assert not (filled := _filled(palace)), f"It is not empty: {filled}."
    if name not in _copies:
        build(palace)
        _copies[name] = _Copy(_counters(palace), _read(palace, space.pk), _sequences())
    else:
        _write(_copies[name], palace, space.pk)
        palace.refresh_from_db()
    return palace


def furnish_with(palace: Palace, *conversations: Transcript) -> Palace:
    """The palace after these were mined."""

    def build(palace: Palace) -> None:
        for conversation in conversations:
            mine(palace, conversation)

    return furnish(palace, repr(conversations), build)


def _filled(palace: Palace) -> list[str]:
    """The tables that have rows of the palace."""
    tables = [
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if any(field.column == "palace_id" for field in model._meta.concrete_fields)
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(
                f"(SELECT '{table}' FROM {table} WHERE palace_id = {palace.pk} LIMIT 1)"  # noqa: S608 - our own.
                for table in tables
            )
        )
        return [table for (table,) in cursor]


def _counters(palace: Palace) -> dict[str, object]:
    palace.refresh_from_db()
    kept = {"highest_wing", "highest_room", "rejected_areas"}
    return {name: getattr(palace, name) for name in kept}


def _read(palace: Palace, space: int) -> list[_Rows]:
    found = []
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            columns = [f.column for f in model._meta.concrete_fields if not f.generated]
            first = [name for name in ("palace_id", "space_id") if name in columns]
            if "palace_id" not in first and model is not CachedEmbedding:
                continue
            listed = ", ".join(
                f'"{name}"' for name in [*first, *(c for c in columns if c not in first)]
            )
            where = f"WHERE palace_id = {palace.pk}" if first else ""
            rows = f"SELECT {listed} FROM {model._meta.db_table} {where}"  # noqa: S608 - our own.
            query = f"COPY ({rows}) TO STDOUT"
            with cursor.copy(query) as copy:
                data = b"".join(bytes(part) for part in copy)
            if data:
                prefix = _prefix(palace.pk, space if "space_id" in first else None)
                assert not first or data.startswith(prefix)
                found.append(_Rows(model._meta.db_table, listed, data, prefix if first else b""))
    return found


def _sequences() -> dict[str, int]:
    """The last key that each has given."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequencename, last_value FROM pg_sequences"
            " WHERE schemaname = current_schema() AND last_value IS NOT NULL"
        )
        return dict(cursor)


# Tables that were made anew or restored count from the beginning, and would give keys twice.
_RAISE_SEQUENCES = """
SELECT setval(quote_ident(sequencename)::regclass, kept)
FROM pg_sequences JOIN unnest(%s::text[], %s::bigint[]) AS copied (name, kept)
    ON name = sequencename
WHERE schemaname = current_schema() AND coalesce(last_value, 0) < kept
"""


def _write(copied: _Copy, palace: Palace, space: int) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        # No triggers: what they would write was copied too, and the order of tables is no matter.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for rows in copied.rows:
            data = rows.data
            if rows.prefix:
                of_space = space if rows.prefix.count(b"\t") == 2 else None
                data = _renamed(data, rows.prefix, _prefix(palace.pk, of_space))
            with cursor.copy(f"COPY {rows.table} ({rows.columns}) FROM STDIN") as copy:
                copy.write(data)
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute(_RAISE_SEQUENCES, [list(copied.sequences), list(copied.sequences.values())])
        Palace.objects.filter(pk=palace.pk).update(**copied.counters)


def _prefix(palace: int, space: int | None) -> bytes:
    return b"".join(b"%d\t" % key for key in (palace, space) if key is not None)


def _renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.startswith(old)
    return new + data[len(old) :].replace(b"\n" + old, b"\n" + new)

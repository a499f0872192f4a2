"""Locks by name, held by the database: they end with whoever holds them, however that ends.

A name stands for itself in each schema: a benchmark's room 7 is not the user's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from django.db import connection

_KEY = "hashtextextended(current_schema() || ' ' || %s, 0)"
_NAMES = "unnest(%s::text[]) AS name"
# The server shows such a lock's key in two halves.
_IS_HELD = f"""
    SELECT EXISTS (
        SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::bigint << 32 | objid::bigint) = {_KEY}
    )
"""  # noqa: S608 - put together from constants.


@contextmanager
def held_if_free(name: str) -> Iterator[bool]:
    """Hold the lock for the length of the block; False, at once, if somebody else holds it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_KEY})", [name])
        ours = cursor.fetchone() == (True,)
        session = connection.connection
    try:
        yield ours
    finally:
        # With a session that has ended meanwhile, the lock has gone as well.
        if ours and connection.connection is session:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_advisory_unlock({_KEY})", [name])


@contextmanager
def held_where_free(names: Collection[str]) -> Iterator[list[str]]:
    """Hold all locks that nobody else holds, for the length of the block; yields their names."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT name, pg_try_advisory_lock({_KEY % 'name'}) FROM {_NAMES}",  # noqa: S608
            [list(names)],
        )
        ours = [name for name, is_ours in cursor.fetchall() if is_ours]
        session = connection.connection
    try:
        yield ours
    finally:
        # With a session that has ended meanwhile, the locks have gone as well.
        if ours and connection.connection is session:
            with connection.cursor() as cursor:
                cursor.execute(
                    f"SELECT pg_advisory_unlock({_KEY % 'name'}) FROM {_NAMES}",  # noqa: S608
                    [ours],
                )


def is_held(name: str) -> bool:
    """Whether somebody holds the lock right now; only a look, which keeps nobody from it."""
    with connection.cursor() as cursor:
        cursor.execute(_IS_HELD, [name])
        (is_held,) = cursor.fetchone()
    return bool(is_held)


def hold_until_commit(name: str) -> None:
    """Wait for the lock and keep it until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({_KEY})", [name])

"""Advisory locks by name, in the database; they end with the session of their holder.

Each schema has its own names: room 7 of a benchmark is not room 7 of the user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from django.db import connection

_KEY = "hashtextextended(current_schema() || ' ' || %s, 0)"
_NAMES = "unnest(%s::text[]) AS name"
# pg_locks shows the key of an advisory lock in two halves.
_IS_HELD = f"""
    SELECT EXISTS (
        SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::bigint << 32 | objid::bigint) = {_KEY}
    )
"""  # noqa: S608 - put together from constants.


@contextmanager
def held_if_free(name: str) -> Iterator[bool]:
    """Hold the lock during the block; yields False at once if it is taken."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_KEY})", [name])
        ours = cursor.fetchone() == (True,)
        session = connection.connection
    try:
        yield ours
    finally:
        # If the session has ended meanwhile, so has the lock.
        if ours and connection.connection is session:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_advisory_unlock({_KEY})", [name])


@contextmanager
def held_where_free(names: Collection[str]) -> Iterator[list[str]]:
    """Hold all free locks of these during the block; yields their names."""
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
        # If the session has ended meanwhile, so have the locks.
        if ours and connection.connection is session:
            with connection.cursor() as cursor:
                cursor.execute(
                    f"SELECT pg_advisory_unlock({_KEY % 'name'}) FROM {_NAMES}",  # noqa: S608
                    [ours],
                )


def is_held(name: str) -> bool:
    """Whether the lock is taken right now; does not take it."""
    with connection.cursor() as cursor:
        cursor.execute(_IS_HELD, [name])
        (is_held,) = cursor.fetchone()
    return bool(is_held)


def hold_until_commit(name: str) -> None:
    """Wait for the lock and keep it until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({_KEY})", [name])

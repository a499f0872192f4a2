"""Locks by name, held by the database: they end with whoever holds them, however that ends.

A name stands for itself in each schema: a benchmark's room 7 is not the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_KEY = "hashtextextended(current_schema() || ' ' || %s, 0)"


@contextmanager
def held_if_free(name: str) -> Iterator[bool]:
    """Hold the lock for the length of the block; False, at once, if somebody else holds it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_KEY})", [name])
        ours = cursor.fetchone() == (True,)
    try:
        yield ours
    finally:
        if ours:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_advisory_unlock({_KEY})", [name])


def hold_until_commit(name: str) -> None:
    """Wait for the lock and keep it until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({_KEY})", [name])

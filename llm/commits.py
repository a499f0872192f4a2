"""Asynchronous commits."""

from __future__ import annotations

from django.db import connection

# An SQL condition that is true, and lets the statement commit without waiting for the disk.
ASYNC_COMMIT = "set_config('synchronous_commit', 'off', true) = 'off'"


def commit_without_waiting() -> None:
    """Commit the current transaction, if it is the outermost, without waiting for the disk.

    Only for work that is repeated if a power cut loses it. It is never lost in part, and a later
    synchronous commit also flushes it. An enclosing transaction is left alone.
    """
    if len(connection.atomic_blocks) == 1:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")

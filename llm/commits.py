"""When a commit need not wait for the disk."""

from __future__ import annotations

from django.db import connection


def commit_without_waiting() -> None:
    """Let this transaction, if it is the outermost, end before the disk has it.

    Only for what is done again should a power cut take it, and never half: whatever is committed
    later, and waits, takes everything before it to the disk. A caller's own transaction is left
    alone.
    """
    if len(connection.atomic_blocks) == 1:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")

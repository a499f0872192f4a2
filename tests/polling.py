"""Waiting for what can be seen, and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection

LOOK_EVERY_S = 0.01
# Longer than anything takes that a test waits for.
PATIENCE_S = 60


def wait_until(
    condition: Callable[[], object], timeout_s: float = PATIENCE_S, *, every_s: float = LOOK_EVERY_S
) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def until(condition: Callable[[], object]) -> None:
    """Return when the condition is true, which nothing in a test keeps waiting so long for."""
    assert wait_until(condition), "It did not come to that."


def somebody_waits_for_us(timeout_s: float = 60) -> bool:
    """Whether another session comes to wait for a lock that this transaction holds."""

    def is_blocking() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                # Unlike pg_stat_activity it is read again each time within a transaction.
                "SELECT count(*) FROM pg_locks"
                " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            return bool(cursor.fetchone()[0])

    return wait_until(is_blocking, timeout_s)

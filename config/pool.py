"""The connection pool of web processes, which quickly detects an unavailable Postgres.

By default, a pool without a server retries with growing pauses, for minutes, while requests wait.
This one is closed as soon as it has no connection left: waiting requests fail, and the next
request opens a new pool.
"""

from __future__ import annotations

import threading
from typing import Any

from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg_pool import ConnectionPool

# The most requests that may wait for a connection; more fail at once.
MOST_WAITING = 500
# Seconds for which connecting is retried.
TRIED_S = 1

_giving_up = threading.Lock()


def options(size: int, wait_s: float) -> dict[str, Any]:
    """For Django's `OPTIONS["pool"]`.

    Args:
        size: The maximum number of connections.
        wait_s: How long a request waits for one before it is refused.
    """
    return {
        "min_size": min(2, size),
        "max_size": size,
        "timeout": wait_s,
        "max_waiting": MOST_WAITING,
        "reconnect_timeout": TRIED_S,
        "reconnect_failed": _could_not_connect,
    }


def _could_not_connect(pool: ConnectionPool[Any]) -> None:
    # It has others, so the server is up, and only refuses more.
    if pool.get_stats()["pool_size"] == 0:
        # In another thread: this one belongs to the pool and would wait for itself.
        threading.Thread(target=give_up, args=[pool], daemon=True).start()


def give_up(pool: ConnectionPool[Any]) -> None:
    """Close the pool: waiting requests fail; connections in use are closed when returned."""
    with _giving_up:
        # Missing in its stubs.
        pools = DatabaseWrapper._connection_pools  # type: ignore[attr-defined]
        for alias in [alias for alias, shared in pools.items() if shared is pool]:
            del pools[alias]
    pool.close(timeout=0)

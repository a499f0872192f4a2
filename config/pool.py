"""The web's connections to Postgres: a few for all requests, and quick to notice that it is away.

Left alone, a pool without a server tries ever more seldom, for minutes, and lets everybody wait.
Here it is given up as soon as it has no connection left: whoever waits is told so, and the next
request begins with a new one.
"""

from __future__ import annotations

import threading
from typing import Any

from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg_pool import ConnectionPool

# Requests that wait for a connection; whoever comes beyond is told at once.
MOST_WAITING = 500
# A connection that cannot be made is tried for so long.
TRIED_S = 1

_giving_up = threading.Lock()


def options(size: int, wait_s: float) -> dict[str, Any]:
    """For Django's `OPTIONS["pool"]`.

    Args:
        size: Connections at most.
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
    # It has others: the server is there, and only does not take more.
    if pool.get_stats()["pool_size"] == 0:
        # Not in this thread, which is one of the pool's own and would wait for itself.
        threading.Thread(target=give_up, args=[pool], daemon=True).start()


def give_up(pool: ConnectionPool[Any]) -> None:
    """Whoever waits for it is refused; connections in use are closed when they are given back."""
    with _giving_up:
        # Its stubs do not know of it.
        pools = DatabaseWrapper._connection_pools  # type: ignore[attr-defined]
        for alias in [alias for alias, held in pools.items() if held is pool]:
            del pools[alias]
    pool.close(timeout=0)

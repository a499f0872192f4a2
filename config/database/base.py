"""The engine: applies the current row access to each statement, and pools web connections.

By default, a pool without a server retries with growing pauses, for minutes, while requests wait.
This one is closed as soon as it has no connection left: waiting requests fail, and the next
request opens a new pool.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
from django.db.backends.postgresql import base
from psycopg import pq
from psycopg_pool import ConnectionPool

from isolation import row_access

if TYPE_CHECKING:
    ClientCursor = psycopg.ClientCursor[Any]
else:  # Only the type checker's version says what it is made of.
    ClientCursor = base.Cursor


# The most requests that may wait for a connection; more fail at once, and are asked to come again:
# past what a machine can do, longer waits only bring older answers.
MOST_WAITING = 100
# Seconds for which connecting is retried.
TRIED_S = 1

_giving_up = threading.Lock()


def pool_options(size: int, wait_s: float) -> dict[str, Any]:
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
        pools = base.DatabaseWrapper._connection_pools  # type: ignore[attr-defined]
        for alias in [alias for alias, shared in pools.items() if shared is pool]:
            del pools[alias]
    pool.close(timeout=0)


class Cursor(ClientCursor):
    """Before a statement is sent, the session gets the access that the statement needs."""

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        row_access.apply(self.connection)
        return super().execute(*args, **kwargs)

    def executemany(self, *args: Any, **kwargs: Any) -> Any:
        row_access.apply(self.connection)
        return super().executemany(*args, **kwargs)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        row_access.apply(self.connection)
        return super().copy(*args, **kwargs)


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "cursor_factory": Cursor}

    def create_cursor(self, name: str | None = None) -> Any:
        if name:
            # One of the server's own, of another class than ours.
            row_access.apply(self.connection)
        return super().create_cursor(name)

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """After a server restart, drop all dead connections at once.

        The pool's own check drops one at a time, with growing pauses.
        """
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        shared: ConnectionPool[Any] | None = getattr(connection, "_pool", None)
        if shared is None or _is_alive(connection):
            return connection
        give_up(shared)
        shared.putconn(connection)
        another: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        return another  # New: it needs no check.

    def _configure_connection(self, connection: psycopg.Connection[Any]) -> bool:
        """With the session's own account: which roles there are is not known yet."""
        with row_access.maintenance():
            return bool(super()._configure_connection(connection))  # type: ignore[misc]

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]
        except BaseException:
            row_access.forget(self.connection)
            raise

    def _rollback(self) -> None:
        row_access.forget(self.connection)
        super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        # Of a transaction that has failed, no other statement is taken before this one.
        with row_access.unchanged():
            super()._savepoint_rollback(sid)  # type: ignore[misc]
        row_access.forget(self.connection)

    def _close(self) -> None:
        # The next user of a shared connection knows nothing of its state.
        row_access.forget(self.connection)
        super()._close()  # type: ignore[misc]


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    """An empty query is answered. Pools' own check is the same, but by a cursor."""
    try:
        return connection.pgconn.exec_(b"").status == pq.ExecStatus.EMPTY_QUERY
    except psycopg.Error:
        return False

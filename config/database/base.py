"""The engine: applies the current reach to each statement; checks pooled connections before use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool

from config.pool import give_up
from isolation import reach

if TYPE_CHECKING:
    ClientCursor = psycopg.ClientCursor[Any]
else:  # Only the type checker's version says what it is made of.
    ClientCursor = base.Cursor


class Cursor(ClientCursor):
    """Before a statement is sent, the session is made to reach what the statement may."""

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        reach.apply(self.connection)
        return super().execute(*args, **kwargs)

    def executemany(self, *args: Any, **kwargs: Any) -> Any:
        reach.apply(self.connection)
        return super().executemany(*args, **kwargs)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        reach.apply(self.connection)
        return super().copy(*args, **kwargs)


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "cursor_factory": Cursor}

    def create_cursor(self, name: str | None = None) -> Any:
        if name:
            # One of the server's own, of another class than ours.
            reach.apply(self.connection)
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
        with reach.maintenance():
            return bool(super()._configure_connection(connection))  # type: ignore[misc]

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]
        except BaseException:
            reach.forget(self.connection)
            raise

    def _rollback(self) -> None:
        reach.forget(self.connection)
        super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        # Of a transaction that has failed, no other statement is taken before this one.
        with reach.unchanged():
            super()._savepoint_rollback(sid)  # type: ignore[misc]
        reach.forget(self.connection)

    def _close(self) -> None:
        # Whoever is given a shared connection next starts from nothing that is known of it.
        reach.forget(self.connection)
        super()._close()  # type: ignore[misc]


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        return False
    return True

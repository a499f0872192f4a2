"""The engine of a web process: a connection that is given out is alive."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool

from config.pool import give_up


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """After a server was restarted, all connections there were are dead, and go at once.

        The pool's own check finds one at a time, with growing pauses between.
        """
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        shared: ConnectionPool[Any] | None = getattr(connection, "_pool", None)
        if shared is None or _is_alive(connection):
            return connection
        give_up(shared)
        shared.putconn(connection)
        another: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        return another  # Made just now: it needs no look.


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        return False
    return True

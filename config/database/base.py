"""The engine of web processes: checks connections before use."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool

from config.pool import give_up


class DatabaseWrapper(base.DatabaseWrapper):
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


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        return False
    return True

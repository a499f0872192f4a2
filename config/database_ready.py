"""Wait for a database of one's own to answer: after a reboot it may start later than Loci."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

from config.single import CannotStart

PAUSE_S = 2.0
_CONNECT_TIMEOUT_S = 5


def wait_for_database(
    database: dict[str, Any], patience_s: float, say: Callable[[str], None]
) -> None:
    """Return once the database answers; until then `say` one line a try.

    Args:
        database: An entry of Django's `DATABASES`.

    Raises:
        CannotStart: It has not answered for `patience_s` seconds.
    """
    start = time.monotonic()
    where = _address(database)
    while (reason := _failure(database)) is not None:
        if time.monotonic() - start + PAUSE_S > patience_s:
            raise CannotStart(
                f"the database at {where} has not answered for {patience_s:.0f} seconds "
                f"({reason}). Start it, or correct DATABASE_URL."
            )
        say(f"Loci: the database at {where} does not answer yet ({reason}); trying again.")
        time.sleep(PAUSE_S)


def _failure(database: dict[str, Any]) -> str | None:
    """Why it cannot be used, in one line; None if it can."""
    try:
        psycopg.connect(
            host=database["HOST"] or None,
            port=database["PORT"] or None,
            user=database["USER"] or None,
            password=database["PASSWORD"] or None,
            dbname=database["NAME"],
            connect_timeout=_CONNECT_TIMEOUT_S,
            **_transport(database),
        ).close()
    except psycopg.OperationalError as error:
        lines = str(error).strip().splitlines() or ["no reason given"]
        return lines[0].rstrip(".")
    return None


def _transport(database: dict[str, Any]) -> dict[str, Any]:
    """How to connect, from the options: such as sslmode; not what is set afterwards."""
    options = database.get("OPTIONS", {})
    return {name: value for name, value in options.items() if name.startswith(("ssl", "gss"))}


def _address(database: dict[str, Any]) -> str:
    """Where it is, without the password."""
    host = database["HOST"] or "localhost"
    return f"{host}:{database['PORT'] or 5432}/{database['NAME']}"

"""Preconditions of a start: no other Loci in this home folder, a free port, a working database."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from config.environment import sign_in_at, start_at

# Seconds for a killed predecessor to release its port.
PORT_PATIENCE_S = 5

PAUSE_S = 2.0
_CONNECT_TIMEOUT_S = 5


class CannotStart(Exception):
    """The message says why, and what to do."""


@contextlib.contextmanager
def only_one(home: Path, address: str) -> Iterator[bool]:
    """Ensure that no other Loci runs on `home`; yields whether the last one was killed.

    Raises:
        CannotStart: another Loci runs.
    """
    home.mkdir(parents=True, mode=0o700, exist_ok=True)
    with (home / "run.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise CannotStart(_already_running(home, lock.read())) from None
        was_killed = lock.tell() > 0
        lock.truncate(0)
        json.dump({"pid": os.getpid(), "address": address}, lock)
        lock.flush()
        yield was_killed
        lock.truncate(0)


def address_of_running(home: Path) -> str | None:
    """The address of the Loci that runs on `home`; None if none does."""
    try:
        with (home / "run.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with contextlib.suppress(ValueError, OSError):
            return str(json.loads((home / "run.lock").read_text())["address"])
        return "an address that it has not written yet"
    except OSError:
        return None
    return None


def _already_running(home: Path, written: str) -> str:
    who, where = "another process", "ADDRESS"
    # The lock's owner may not have written yet.
    with contextlib.suppress(ValueError):
        found = json.loads(written)
        who, where = f"process {found['pid']}", found["address"]
    return (
        f"Loci is already running on {home} ({who}): open {where}, or stop it first with Ctrl-C "
        f"in its terminal. `{sign_in_at(where)}` prints a new address to sign in."
    )


def check_port(host: str, port: int, *, patience_s: float) -> None:
    if not 0 < port < 2**16:
        raise CannotStart(f"{port} is not a port. Choose another: `{start_at(8001)}`.")
    deadline = time.monotonic() + patience_s
    while (error := _bind_error(host, port)) is not None:
        if error.errno == errno.EACCES:
            raise CannotStart(f"Port {port} is for root only. Choose one above 1023.")
        if time.monotonic() > deadline:
            raise CannotStart(
                f"Port {port} is taken by another program ({error.strerror}). "
                f"Choose another: `{start_at(port + 1)}`."
            )
        time.sleep(0.2)


def _bind_error(host: str, port: int) -> OSError | None:
    with socket.socket() as probe:
        # With the web server's options: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


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
    while (reason := why_database_fails(database)) is not None:
        if time.monotonic() - start + PAUSE_S > patience_s:
            raise CannotStart(
                f"the database at {where} has not answered for {patience_s:.0f} seconds "
                f"({reason}). Start it, or correct DATABASE_URL."
            )
        say(f"Loci: the database at {where} does not answer yet ({reason}); trying again.")
        time.sleep(PAUSE_S)


def why_database_fails(database: dict[str, Any]) -> str | None:
    """Why it cannot be used, in one line; None if it can."""
    try:
        _connect(database).close()
    except psycopg.OperationalError as error:
        lines = str(error).strip().splitlines() or ["no reason given"]
        return lines[0].rstrip(".")
    return None


def only_reads(database: dict[str, Any]) -> bool:
    """Whether it takes no writes, as where another server has become the primary."""
    with _connect(database) as connection:
        found = connection.execute("SELECT current_setting('transaction_read_only')").fetchone()
    return found == ("on",)


def _connect(database: dict[str, Any]) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=database["HOST"] or None,
        port=database["PORT"] or None,
        user=database["USER"] or None,
        password=database["PASSWORD"] or None,
        dbname=database["NAME"],
        connect_timeout=_CONNECT_TIMEOUT_S,
        **_transport(database),
    )


def _transport(database: dict[str, Any]) -> dict[str, Any]:
    """The options of the connection itself, such as sslmode, without those set afterwards."""
    options = database.get("OPTIONS", {})
    return {name: value for name, value in options.items() if name.startswith(("ssl", "gss"))}


def _address(database: dict[str, Any]) -> str:
    """The database's address, without the password."""
    host = database["HOST"] or "localhost"
    return f"{host}:{database['PORT'] or 5432}/{database['NAME']}"

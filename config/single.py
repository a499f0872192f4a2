"""Preconditions of a start: no other Loci on this home folder, and a free port."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

# Seconds for a killed predecessor to release its port.
PORT_PATIENCE_S = 5


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


def _already_running(home: Path, written: str) -> str:
    who, where = "another process", "ADDRESS"
    # The lock's owner may not have written yet.
    with contextlib.suppress(ValueError):
        found = json.loads(written)
        who, where = f"process {found['pid']}", found["address"]
    return (
        f"Loci is already running on {home} ({who}): open {where}, or stop it first with Ctrl-C "
        f"in its terminal. `manage.py sign_in_link --base {where}` prints a new address to sign in."
    )


def check_port(host: str, port: int, *, patience_s: float) -> None:
    if not 0 < port < 2**16:
        raise CannotStart(f"{port} is not a port. Choose another: `make run PORT=8001`.")
    deadline = time.monotonic() + patience_s
    while (error := _bind_error(host, port)) is not None:
        if error.errno == errno.EACCES:
            raise CannotStart(f"Port {port} is for root only. Choose one above 1023.")
        if time.monotonic() > deadline:
            raise CannotStart(
                f"Port {port} is taken by another program ({error.strerror}). "
                f"Choose another: `make run PORT={port + 1}`."
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

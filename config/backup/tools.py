"""PostgreSQL's own programs: where they are, and how they reach the database."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import psycopg
from psycopg.conninfo import make_conninfo

from config.embedded import ServiceError, postgres_bin

_PIECE = 2**20


class BackupError(Exception):
    """The message says what is wrong and what to do; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Server:
    """A database's address and password, for PostgreSQL's programs and psycopg.

    Attributes:
        address: Without the password, because arguments are visible to other processes.
        environment: With the password, where there is one.
    """

    address: str
    environment: Mapping[str, str]

    def connect(self) -> psycopg.Connection[Any]:
        password = self.environment.get("PGPASSWORD")
        return psycopg.connect(self.address, password=password)


def server_of(database: Mapping[str, Any]) -> Server:
    """
    Args:
        database: An entry of Django's `DATABASES`.
    """
    options = database.get("OPTIONS", {})
    transport = {name: value for name, value in options.items() if name.startswith(("ssl", "gss"))}
    address = make_conninfo(
        host=database["HOST"] or None,
        port=database["PORT"] or None,
        user=database["USER"] or None,
        dbname=database["NAME"],
        **transport,
    )
    password = {"PGPASSWORD": database["PASSWORD"]} if database["PASSWORD"] else {}
    return Server(address, {**os.environ, **password})


def find_tool(name: str, server_major: int) -> str:
    """The bundled program, or the one on PATH, that is not older than the server.

    Raises:
        BackupError: There is none.
    """
    found = [path for path in (_bundled(name), shutil.which(name)) if path]
    versions = {path: _major(path) for path in found}
    for path, version in versions.items():
        if version >= server_major:
            return path
    which = f"is older ({max(versions.values())})" if versions else "is missing"
    raise BackupError(
        f"{name} {which}, and the server is PostgreSQL {server_major}. Install PostgreSQL's client "
        f"programs of version {server_major} or newer (postgresql-client-{server_major})."
    )


def _bundled(name: str) -> str | None:
    try:
        path = postgres_bin() / name
    except ServiceError:
        return None
    return str(path) if path.is_file() else None


def _major(path: str) -> int:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    number = re.search(r"\) (\d+)", said.stdout)
    return int(number[1]) if number else 0


def output_of(command: Sequence[str], server: Server) -> Generator[bytes, None, None]:
    """The output of a program, in pieces.

    Raises:
        BackupError: It failed; with its error output.
    """
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(  # noqa: S603 - PostgreSQL's own, no shell.
            command, stdout=subprocess.PIPE, stderr=said, env=dict(server.environment)
        ) as program,
    ):
        out = cast(IO[bytes], program.stdout)
        try:
            while piece := out.read(_PIECE):
                yield piece
        except GeneratorExit:
            program.terminate()
            raise
        if program.wait():
            raise BackupError(failure(command, said))


def failure(command: Sequence[str], said: IO[bytes]) -> str:
    """The error output of a failed program, as a sentence."""
    said.seek(0)
    words = said.read().decode(errors="replace").strip()[-1500:]
    return f"{Path(command[0]).name} failed: {words or 'no reason given'}"

"""Write backups: on demand, on schedule, and before migrations."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from config.backup import (
    DUMP,
    IMPORTS,
    SECRET_KEY,
    ArchiveWriter,
    BackupError,
    Server,
    find_tool,
    output_of,
    server_of,
    writing,
)
from config.environment import MANAGE
from isolation import row_access
from isolation.policies import RowsHidden, is_filtered
from palace.models import ImportJob
from palace.storage.indexing.spaces import are_migrations_pending
from palace.transfer.spools import spool_folder

_PIECE = 2**20
SUFFIX = ".locibackup"
_OURS = re.compile(rf"loci-\d{{8}}T\d{{6}}Z(-[a-z-]+)?{re.escape(SUFFIX)}")

WITHOUT_KEY = (
    "The signing key (secret_key) is not in it: it would let a finder of the file sign in. Without "
    "it users' own API keys have to be entered again. A passphrase, or --with-secrets, adds it."
)
PARTLY_HIDDEN = (
    "The account in DATABASE_URL does not see every row, so a backup would lack some. Run "
    f"`{MANAGE} migrate` with it, which says what it needs."
)
KEY_ELSEWHERE = "LOCI_SECRET_KEY is not in it. Keep it yourself: it decrypts users' own API keys."

BEFORE_MIGRATING = "before-migrating"
KEPT_BEFORE_MIGRATING = 3


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was written.

    Attributes:
        notes: What it does not contain, in sentences.
    """

    file: Path
    size: int
    rows: int
    notes: list[str]


def back_up(server: Server, file: Path, *, passphrase: str = "", with_secrets: bool) -> Backup:
    """Write a backup; it gets its name once it is complete.

    Raises:
        BackupError: A program of PostgreSQL is missing or failed.
        OSError: The file cannot be written; no part of it remains.
    """
    # A name of its own: another backup may be writing to the same file.
    handle, name = mkstemp(prefix=f"{file.name}.", suffix=".part", dir=file.parent)
    unfinished = Path(name)
    try:
        with open(handle, "wb") as out:  # noqa: PTH123 - a handle has no path.
            with writing(out, passphrase) as archive:
                manifest = _fill(archive, server, with_key=with_secrets or bool(passphrase))
            out.flush()
            os.fsync(out.fileno())
        size = unfinished.stat().st_size
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
    return Backup(file, size, sum(manifest["rows"].values()), manifest["left_out"])


def new_name(folder: Path, label: str = "") -> Path:
    """A file name with the current time, in a folder that is created if missing."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return folder / f"loci-{moment}{f'-{label}' if label else ''}{SUFFIX}"


def keep_newest(folder: Path, count: int, label: str = "") -> list[Path]:
    """Delete all but the newest backups of a folder with this label; returns what was deleted."""
    ending = f"-{label}" if label else ""
    found = [
        path
        for path in folder.glob(f"loci-*{SUFFIX}")
        if (name := _OURS.fullmatch(path.name)) and (name[1] or "") == ending
    ]
    old = sorted(found, key=lambda path: path.name)[:-count]
    for path in old:
        path.unlink(missing_ok=True)
    return old


def _fill(archive: ArchiveWriter, server: Server, *, with_key: bool) -> dict[str, Any]:
    with server.connect() as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        archive.add(DUMP, output_of(_command(server, connection), server))
        manifest = {
            "loci": settings.VERSION,
            "made_at": datetime.now(UTC).isoformat(),
            "postgres": connection.info.server_version,
            "migrations": migrations_of(connection),
            "rows": count_rows(connection),
            "left_out": [*_add_key(archive, with_key=with_key), *_add_imports(archive, connection)],
        }
    archive.finish(manifest)
    return manifest


def _command(server: Server, connection: psycopg.Connection[Any]) -> list[str]:
    major = connection.info.server_version // 10_000
    [snapshot] = connection.execute("SELECT pg_export_snapshot()").fetchone() or [""]
    # Other schemas are those of benchmarks.
    others = connection.execute(
        "SELECT quote_ident(nspname) FROM pg_namespace"
        " WHERE nspname NOT LIKE 'pg\\_%' AND nspname NOT IN ('public', 'information_schema')"
    )
    return [
        *(find_tool("pg_dump", major), "--format=custom", "--no-owner", "--no-comments"),
        *("--no-password", f"--snapshot={snapshot}", *_row_security(connection)),
        *(f"--exclude-schema={name}" for (name,) in others),
        f"--dbname={server.address}",
    ]


def _row_security(connection: psycopg.Connection[Any]) -> list[str]:
    """pg_dump needs this option for an owner without superuser rights: policies apply to it."""
    try:
        return ["--enable-row-security"] if is_filtered(connection) else []
    except RowsHidden as error:
        raise BackupError(PARTLY_HIDDEN) from error


def migrations_of(connection: psycopg.Connection[Any]) -> list[list[str]]:
    """The migrations that the database has, as `[app, name]`."""
    rows = connection.execute("SELECT app, name FROM django_migrations ORDER BY app, name")
    return [[app, name] for app, name in rows]


def tables_of(connection: psycopg.Connection[Any]) -> list[str]:
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        " ORDER BY relname"
    )
    return [name for (name,) in rows]


def count_rows(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """The number of rows of each table."""
    counts = {}
    for table in tables_of(connection):
        query = sql.SQL("SELECT count(*) FROM public.{}").format(sql.Identifier(table))
        [counts[table]] = connection.execute(query).fetchone() or [0]
    return counts


def _add_key(archive: ArchiveWriter, *, with_key: bool) -> Sequence[str]:
    path = settings.LOCI_HOME / "secret_key"
    if not path.is_file() or path.read_text().split()[:1] != [settings.SECRET_KEY]:
        return [KEY_ELSEWHERE]
    if not with_key:
        return [WITHOUT_KEY]
    archive.add(SECRET_KEY, _pieces(path))
    return []


def _add_imports(archive: ArchiveWriter, connection: psycopg.Connection[Any]) -> Iterator[str]:
    """The prepared files of imports that were not finished at the moment of the backup."""
    waiting = connection.execute(
        "SELECT spool FROM palace_importjob WHERE status = ANY(%s) AND spool <> '' ORDER BY id",
        [[str(status) for status in ImportJob.UNFINISHED]],
    )
    for (name,) in waiting.fetchall():
        path = spool_folder() / name
        if path.is_file():
            archive.add(f"{IMPORTS}{name}", _pieces(path))
        else:
            yield f"An import's prepared file ({name}) is gone; import that file again."


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def passphrase_from(file: Path | None) -> str:
    """The passphrase in a file, or of the environment; empty for none.

    Raises:
        BackupError: The file cannot be read, or is empty.
    """
    if file is None:
        return str(settings.BACKUP_PASSPHRASE)
    try:
        passphrase = file.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"The passphrase cannot be read from {file}: {error}.") from error
    if not passphrase:
        raise BackupError(f"{file} is empty. Write a passphrase into it.")
    return passphrase


def back_up_by_the_clock() -> Backup:
    """Write a backup into the folder of backups, and delete the oldest ones there.

    Raises:
        BackupError: As `back_up`.
        OSError: As `back_up`.
    """
    return _write("", settings.BACKUP_KEEP)


def back_up_before_migrating(say: Callable[[str], None]) -> Path | None:
    """Write a backup if migrations are waiting and there is anything to lose; returns the file.

    Raises:
        BackupError: As `back_up`.
        OSError: As `back_up`.
    """
    # Before the first migration there are no roles.
    with row_access.maintenance():
        if not _has_accounts() or not are_migrations_pending():
            return None
    say("The tables are about to change; saving everything first ...")
    return _write(BEFORE_MIGRATING, KEPT_BEFORE_MIGRATING).file


def _write(label: str, keep: int) -> Backup:
    folder = settings.BACKUP_FOLDER
    done = back_up(
        server_of(connection.settings_dict),
        new_name(folder, label),
        passphrase=settings.BACKUP_PASSPHRASE,
        with_secrets=False,
    )
    keep_newest(folder, keep, label)
    return done


def _has_accounts() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('auth_user')")
        if cursor.fetchone() == (None,):
            return False
        cursor.execute("SELECT EXISTS (SELECT FROM auth_user)")
        return bool(cursor.fetchone() == (True,))

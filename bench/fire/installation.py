"""A real Loci in a folder of its own, on this machine alone: started, asked, and its processes.

It runs as `make run` runs it. Its database is read here with SQL. Root can give it a small file
system of its own, in memory, which can be filled up and made read-only; a C compiler gives it a
clock of its own, which jumps. Without one or the other these faults are left out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis
from django.conf import settings

HOST = "127.0.0.1"
START_S = 240
STOP_S = 120
WEB, WORKER, LONG, CLOCK = "web", "worker", "long worker", "clock"
POSTGRES, REDIS = "Postgres", "Redis"
# What stands in the command of a program that `manage.py run` keeps running.
_MARKS = {
    WEB: "uvicorn",
    WORKER: "--hostname short@",
    LONG: "--hostname long@",
    CLOCK: "-A config.clock beat",
}
_READY = "Ctrl-C stops everything."
SIZE_MB = 1500
_CHUNK = b"\0" * 2**20


class NotStarted(Exception):
    """Loci did not start or did not stop; the message quotes what it printed."""


class Installation:
    """
    Args:
        home: Its folder, which need not exist.
        environment: Settings that differ from the usual ones.
        log: Gets what it prints.
    """

    def __init__(self, home: Path, environment: dict[str, str], log: Path) -> None:
        self.home = home
        self.layout = replace(settings.EMBEDDED, home=home)
        self.address = f"http://{HOST}:{_free_port()}"
        outer = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("LOCI_") and name not in {"DATABASE_URL", "REDIS_URL"}
        }
        self.environment = outer | {
            "LOCI_HOME": str(home),
            "LOCI_MODELS_DIR": str(settings.MODELS_DIR),
            "NO_COLOR": "1",
            **environment,
        }
        self._log = log
        self._run: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start it, and return the path that signs the owner in.

        Raises:
            NotStarted: It does not come up.
        """
        port = self.address.rpartition(":")[2]
        with self._log.open("ab") as output:
            self._run = self.command("run", "--port", port, stdout=output, stderr=output)
        if not wait_until(lambda: _READY in self.printed() or self._ended(), START_S):
            raise NotStarted(f"Loci did not start within {START_S} s: {self.printed()[-2000:]}")
        found = re.search(rf"{self.address}(/\S+/once/\S+)", self.printed())
        if found is None:
            raise NotStarted(f"Loci did not start: {self.printed()[-2000:]}")
        return found[1]

    def stop(self) -> None:
        """As by Ctrl-C.

        Raises:
            NotStarted: It does not stop.
        """
        if self._run is None:
            return
        self._run.send_signal(signal.SIGINT)
        try:
            self._run.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise NotStarted(f"Loci did not stop: {self.printed()[-2000:]}") from None

    def kill(self) -> None:
        """End whatever of it still runs."""
        if self._run is None:
            return
        with contextlib.suppress(psutil.Error):
            for process in [*self._programs(), *self.processes(POSTGRES), *self.processes(REDIS)]:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        self._run.kill()
        self._run.wait()

    def command(
        self, *arguments: str, environment: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Start a command of `manage.py` on this installation.

        Args:
            environment: Settings that differ from the installation's.
        """
        words = [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]
        return subprocess.Popen(  # noqa: S603 - our own program, no shell.
            words,
            env=self.environment | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        )

    def second_worker(self, code: Path = settings.BASE_DIR) -> subprocess.Popen[bytes]:
        """
        Args:
            code: The folder of the version that it runs.
        """
        words = [sys.executable, "-m", "celery", "--quiet", "-A", "config", "worker"]
        return subprocess.Popen(  # noqa: S603 - our own program, no shell.
            [*words, "--concurrency", "2", "--hostname", "second@%h"],
            env=self.environment,
            cwd=code,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def second_web(self, code: Path) -> tuple[str, subprocess.Popen[bytes]]:
        """Start one more web and wait until it listens; returns its address, too.

        Args:
            code: The folder of the version that it runs.

        Raises:
            NotStarted: It does not come up.
        """
        port = _free_port()
        words = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--lifespan", "off"]
        with self._log.open("ab") as output:
            web = subprocess.Popen(  # noqa: S603 - our own program, no shell.
                [*words, "--host", HOST, "--port", str(port)],
                env=self.environment,
                cwd=code,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        if not wait_until(lambda: _listens(port), START_S):
            web.kill()
            raise NotStarted(f"A web of {code} did not start within {START_S} s.")
        return f"http://{HOST}:{port}", web

    def printed(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def processes(self, name: str) -> list[psutil.Process]:
        """A program's processes, its main one first; none if it is not running at the moment."""
        if name in _MARKS:
            return [each for each in self._programs() if _has(each, _MARKS[name])]
        pid = (self.layout.postgres if name == POSTGRES else self.layout.redis).pid()
        if pid is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            main = psutil.Process(pid)
            return [main, *main.children(recursive=True)]
        return []

    def _programs(self) -> list[psutil.Process]:
        assert self._run is not None  # noqa: S101 - it was started.
        with contextlib.suppress(psutil.NoSuchProcess):
            # A parent comes before its children.
            return psutil.Process(self._run.pid).children(recursive=True)
        return []

    def _ended(self) -> bool:
        return self._run is not None and self._run.poll() is not None

    def rows(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[tuple[Any, ...]]:
        """
        Raises:
            psycopg.Error: the database is away, or hangs.
        """
        with psycopg.connect(
            self.layout.database_url, connect_timeout=3, options="-c statement_timeout=5000"
        ) as connection:
            return connection.execute(statement.encode(), parameters).fetchall()

    @contextlib.contextmanager
    def broker(self) -> Iterator[redis.Redis]:
        """
        Raises:
            redis.RedisError: it is away, or hangs.
        """
        client = redis.Redis.from_url(self.layout.redis_url, socket_timeout=3)
        try:
            yield client
        finally:
            client.close()


def send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def wait_until(condition: Callable[[], object], timeout_s: float, *, every_s: float = 0.1) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def _has(process: psutil.Process, words: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return words in " ".join(process.cmdline())
    return False


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex((HOST, port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class OwnDisk:
    folder: Path

    @contextmanager
    def full(self) -> Iterator[None]:
        """Not a byte is free."""
        ballast = self.folder / "ballast"
        try:
            with ballast.open("wb", buffering=0) as file:
                _fill(file.fileno())
            yield
        finally:
            ballast.unlink(missing_ok=True)

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """No file can be opened for writing by its path; what is open stays so."""
        here = str(self.folder)
        _run("mount", "--bind", here, here)
        try:
            _run("mount", "-o", "remount,bind,ro", here)
            yield
        finally:
            _run("umount", "--lazy", here)


@contextmanager
def own_disk(folder: Path) -> Iterator[OwnDisk | None]:
    """Mount one at the folder during the block; None where that is not permitted."""
    folder.mkdir()
    if os.geteuid() != 0 or not _mounts(folder):
        yield None
        return
    try:
        yield OwnDisk(folder)
    finally:
        _run("umount", "--lazy", str(folder))


def _mounts(folder: Path) -> bool:
    with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
        _run("mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=755", "loci-fire", str(folder))
        return True
    return False


def _fill(descriptor: int) -> None:
    chunk = _CHUNK
    while chunk:
        try:
            os.write(descriptor, chunk)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            chunk = chunk[: len(chunk) // 2]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - fixed words and a folder of ours.


@dataclass(frozen=True, slots=True)
class OwnClock:
    """The clock of an installation: the machine's, and so much ahead or behind.

    Attributes:
        library: Is preloaded into its programs.
        shift: A file that says by how many seconds.
    """

    library: Path
    shift: Path

    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "FIRE_SHIFT": str(self.shift)}

    @contextmanager
    def jumped(self, by_s: int) -> Iterator[None]:
        self.shift.write_text(str(by_s))
        try:
            yield
        finally:
            self.shift.write_text("0")


def own_clock(folder: Path) -> OwnClock | None:
    """None where its library cannot be compiled."""
    library, shift = folder / "shifted_clock.so", folder / "shift"
    source = Path(__file__).with_name("shifted_clock.c")
    try:
        _run("cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
    shift.write_text("0")
    return OwnClock(library, shift)

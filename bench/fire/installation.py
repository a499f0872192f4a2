"""A real Loci in a folder of its own, on this machine alone: started, asked, and its processes.

It runs as `make run` runs it. Its database is read here with SQL. A second one beside it restores
its backups.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis
from celery import Celery
from django.conf import settings
from kombu.exceptions import OperationalError

HOST = "127.0.0.1"
START_S = 240
STOP_S = 120
WEB, WORKER, LONG, CLOCK = "web", "worker", "long worker", "clock"
WORKERS = (WORKER, LONG)
# A worker beside those of `manage.py run`.
SECOND = "second worker"
POSTGRES, REDIS = "Postgres", "Redis"
# What stands in the command of a program that `manage.py run` keeps running.
_MARKS = {
    WEB: "uvicorn",
    WORKER: "--hostname short@",
    LONG: "--hostname long@",
    CLOCK: "-A config.clock beat",
}
# What each worker calls itself, before its machine's name.
_NODES = {WORKER: "short", LONG: "long", SECOND: "second"}
_READY = "Ctrl-C stops everything."
_HOME = "LOCI_HOME"


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
            _HOME: str(home),
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

    def run(self, *arguments: str) -> tuple[int, str]:
        """A command's exit code, and what it said."""
        command = self.command(*arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = command.communicate()[0].decode(errors="replace")
        return command.returncode, said

    def beside(self, folder: Path) -> Installation:
        """Another one in that folder, with the same settings."""
        environment = {name: value for name, value in self.environment.items() if name != _HOME}
        return Installation(folder / "home", environment, folder / "log")

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
            [*words, "--concurrency", "2", "--hostname", f"{_NODES[SECOND]}@%h"],
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
        self,
        statement: str,
        parameters: Mapping[str, object] | None = None,
        *,
        timeout_s: int = 5,
    ) -> list[tuple[Any, ...]]:
        """
        Raises:
            psycopg.Error: the database is away, or hangs.
        """
        with psycopg.connect(
            self.layout.database_url,
            connect_timeout=3,
            options=f"-c statement_timeout={timeout_s}s",
        ) as connection:
            return connection.execute(statement.encode(), parameters).fetchall()

    def tasks(self, *workers: str) -> dict[str, list[Any]]:
        """The tasks that each of these workers says it is doing; without silent workers."""
        names = {f"{_NODES[worker]}@{socket.gethostname()}": worker for worker in workers}
        address = self.layout.redis_url.replace("unix://", "redis+socket://", 1)
        with Celery(broker=address, set_as_current=False) as asking:
            asks = asking.control.inspect([*names], timeout=1, limit=len(names))
            with contextlib.suppress(OperationalError, redis.RedisError):
                return {names[name]: [*tasks] for name, tasks in (asks.active() or {}).items()}
        return {}

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


# Where a restore is killed: by what its psql does; or afterwards, before it has ended.
ROWS, KEYS, AFTER = "rows", "keys", "end"
PHASES = (ROWS, KEYS, AFTER)
_PSQL = """
SELECT query LIKE 'COPY %', query ~ 'ADD CONSTRAINT|^CREATE (UNIQUE INDEX|INDEX|TRIGGER|POLICY)'
FROM pg_stat_activity WHERE datname = 'loci' AND application_name = 'psql'
"""
_TABLES = """
SELECT quote_ident(relname) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_ROWS = "SELECT count(*), md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM public.{} t"
_DEFINED = """
SELECT line FROM (
  SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT concat_ws(' ', tablename, policyname, cmd, roles, qual, with_check)
  FROM pg_policies WHERE schemaname = 'public'
  UNION ALL SELECT concat_ws(' ', relname, relrowsecurity, relforcerowsecurity)
  FROM pg_class WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', sequencename, last_value) FROM pg_sequences
) defined (line) ORDER BY line
"""
# Of each table the number of rows and their digest; under no name, keys, policies and the like.
Content = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class SecondHome:
    """Where backups of an installation are restored, while that goes on."""

    loci: Installation

    def restore(self, backup: Path) -> str:
        """Returns what is wrong with it, in words; empty if nothing is."""
        code, said = self.loci.run(*_restore(backup))
        return said[-500:] if code else ""

    def content(self) -> Content:
        """All that its database holds, as digests."""
        with self.loci.layout.services():
            found: Content = {"": self.loci.rows(_DEFINED, timeout_s=60)}
            for (table,) in self.loci.rows(_TABLES):
                found[table] = self.loci.rows(_ROWS.format(table), timeout_s=60)
        return found

    def is_killed(self, backup: Path, phase: str, *, alone: bool) -> bool:
        """Begin a restore, and kill it in that phase; False if it was not in it.

        Args:
            alone: Only the command, and not what it has started; all at once is like a power cut.
        """
        command = self.loci.command(
            *_restore(backup), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        main, is_reached = psutil.Process(command.pid), self._reaching(phase)
        was_reached = wait_until(
            lambda: command.poll() is not None or is_reached(), START_S, every_s=0.002
        )
        with contextlib.suppress(psutil.NoSuchProcess):
            # The command first: it must not notice that its programs end.
            for process in [main, *([] if alone else main.children(recursive=True))]:
                send(process, signal.SIGKILL)
        was_killed = command.wait() == -signal.SIGKILL
        return was_killed and was_reached and self._mark.exists()

    @property
    def _mark(self) -> Path:
        return self.loci.home / "unfinished-restore"

    def _reaching(self, phase: str) -> Callable[[], bool]:
        has_begun = False

        def is_reached() -> bool:
            nonlocal has_begun
            does = self._psql_does()
            has_begun = has_begun or bool(does)
            if phase == AFTER:
                return has_begun and does == [] and self._mark.exists()
            return does[0][PHASES.index(phase)] if does else False

        return is_reached

    def _psql_does(self) -> list[tuple[bool, bool]] | None:
        """Whether it copies rows, and whether it makes keys; None if no database answers."""
        # Connected to the database itself it would be in the restore's way.
        beside = f"{self.loci.layout.database_url.rpartition('/')[0]}/postgres"
        with contextlib.suppress(psycopg.Error), psycopg.connect(beside) as connection:
            return connection.execute(_PSQL).fetchall()
        return None


def _restore(backup: Path) -> tuple[str, ...]:
    return "restore", str(backup), "--replace", "--yes"


def differing(one: Content, other: Content) -> str:
    """The names of the tables in which they differ."""
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    return ", ".join(name or "keys and policies" for name in names)

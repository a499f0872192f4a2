"""Start Loci on this machine: services, web, worker and clock, in one terminal."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import shutil
import signal
import sys
import threading
import time
import webbrowser
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections

from config import embedded, environment, preconditions
from config.backup import BackupError
from config.backup.dump import back_up_before_migrating
from config.backup.restore import why_unfinished
from config.environment import env_text
from config.management.base import LociCommand, Stopped, StopSignals
from config.preconditions import CannotStart, wait_for_database
from config.supervisor import Program, Supervisor
from language.errors import EmbeddingMismatch
from llm.onnx_runtime import available_cores
from palace.storage.indexing import spaces
from palace.transfer.spools import private_folder
from settings_app import task_queue
from settings_app.accounts import FIRST_LINK_LASTS, find_owner, one_time_link

HOST = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only for who asks for it.
OPEN_TO_ALL = (
    f"with --host {EVERYWHERE} others in your network reach Loci, and could make accounts. Leave "
    "it out; or set LOCI_SIGN_UP=false, so that nobody can, or LOCI_SIGN_UP=true if they may."
)
OWNER = "owner"
WEB = "web"
STARTING_S = 90
# Seconds that a silent connection stays open. After uvicorn's five it is closed while clients that
# ask every few seconds send their next request, which is lost then.
KEEP_ALIVE_S = 75
REVIVE_INTERVAL_S = 1


class Command(LociCommand):
    signals: StopSignals
    host: str
    opens_browser: bool
    help = "Start Loci and print an address that signs the owner in. Ctrl-C stops everything."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="The web's port (8000).")
        parser.add_argument(
            "--host",
            default=HOST,
            choices=[HOST, EVERYWHERE],
            help=f"Listen on this machine only (the default), or, in a container, on {EVERYWHERE}.",
        )
        parser.add_argument(
            "--browser", action="store_true", help="Open the address that signs in."
        )

    def handle(self, *, port: int, host: str, browser: bool, **options: Any) -> None:
        if host != HOST and settings.USES_EMBEDDED_SERVICES and not env_text("LOCI_SIGN_UP"):
            raise CannotStart(OPEN_TO_ALL)
        self.host, self.opens_browser = host, browser
        _check_watched_folder()
        self._say(f"Loci {settings.VERSION}")
        alone = preconditions.only_one(settings.EMBEDDED.home, f"http://{HOST}:{port}/")
        with StopSignals() as signals, contextlib.suppress(Stopped), alone as last_was_killed:
            patience_s = preconditions.PORT_PATIENCE_S if last_was_killed else 0
            preconditions.check_port(host, port, patience_s=patience_s)
            if (why := why_unfinished()) is not None:
                raise CannotStart(why)
            self.signals = signals
            # Of processes that have ended.
            shutil.rmtree(settings.METRICS_FOLDER, ignore_errors=True)
            self._run(port)
        self._say("Loci has stopped; everything is kept for the next start.")

    def _run(self, port: int) -> None:
        with self._services() as services:
            with self._step("Bringing the tables up to date"):
                self._save_before_migrating()
                call_command("migrate", verbosity=0)
                _check_embedding_model()
                owner = find_owner() or _make_owner()
                link = one_time_link(owner, lasts=FIRST_LINK_LASTS)
                connections.close_all()
            try:
                asyncio.run(self._supervise(f"http://{HOST}:{port}{link}", port, services))
            finally:
                # From here on all programs are stopping.
                self.signals.then(lambda: None)
            if services:
                self._say("Stopping Postgres and Redis ...")

    def _save_before_migrating(self) -> None:
        try:
            saved = back_up_before_migrating(self._say)
        except (BackupError, OSError) as error:
            raise CannotStart(
                f"the tables have to change, and saving them first failed: {error} Mend that; or "
                f"run `{environment.MANAGE} migrate` yourself to go on without a way back."
            ) from error
        if saved:
            self._say(f"  saved as {saved}")

    @contextlib.contextmanager
    def _services(self) -> Iterator[list[int]]:
        """Run the embedded services unless others are set; yields the locks to inherit."""
        with contextlib.ExitStack() as stack:
            services = []
            if settings.USES_EMBEDDED_SERVICES:
                with self._step("Starting Postgres and Redis"):
                    services = [stack.enter_context(embedded.services(settings.EMBEDDED))]
            else:
                wait_for_database(settings.DATABASE, settings.DB_START_WAIT_S, self._say)
            yield services

    async def _supervise(self, link: str, port: int, services: list[int]) -> None:
        layout = settings.EMBEDDED
        logs = {"postgres": layout.postgres_log, "redis": layout.redis_log} if services else {}
        supervisor = Supervisor(
            _programs(self.host, port),
            logs,
            self._say,
            inherited=services,
            passes_json=settings.LOG_JSON,
        )
        loop = asyncio.get_running_loop()
        self.signals.then(lambda: loop.call_soon_threadsafe(self._stop, supervisor))
        self._say("Starting the web, the worker and the clock ...")

        async def show_address() -> None:
            seconds = await wait_for_web(port, supervisor, self._say)
            self._say(f"  ready in {seconds:.1f} s\n")
            await asyncio.to_thread(self._show_link, link)
            self._say(
                f"A key for programs: `{environment.KEY}` prints one; /api/docs/ says what for.\n"
            )
            self._say("Ctrl-C stops everything.\n")

        async def revive_services() -> None:
            while services:
                await asyncio.sleep(REVIVE_INTERVAL_S)
                try:
                    await asyncio.to_thread(embedded.revive, layout)
                except embedded.ServiceError as error:
                    self._say(str(error))

        await supervisor.run(show_address(), revive_services())

    def _show_link(self, link: str) -> None:
        if self.opens_browser:
            self._say(
                "Your browser opens, signed in. If it does not, open this; it works once:"
                f"\n\n  {link}\n"
            )
            # In a thread, because a browser may stay in the foreground.
            threading.Thread(target=_open, args=(link,), daemon=True).start()
        else:
            self._say(f"Open this address to sign in; it works once:\n\n  {link}\n")

    def _stop(self, supervisor: Supervisor) -> None:
        self._say("\nStopping ...")
        supervisor.stop()

    @contextlib.contextmanager
    def _step(self, title: str) -> Iterator[None]:
        self._say(f"{title} ...")
        start = time.monotonic()
        yield
        self._say(f"  done in {time.monotonic() - start:.1f} s")
        self.signals.check()

    def _say(self, text: str) -> None:
        try:
            self.stdout.write(f"{text}\n", ending="")
            self.stdout.flush()
        except OSError:
            # The terminal is gone, which must not prevent stopping.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def wait_for_web(
    port: int, supervisor: Supervisor, say: Callable[[str], None], *, starting_s: float = STARTING_S
) -> float:
    """Wait until the web answers, for as long as it has not ended; returns the seconds it took.

    Args:
        starting_s: How long a start usually takes at most. Past it a web that has ended is given
            up, and one that has not is waited for: the machine is slow, or busy.

    Raises:
        CannotStart: the web ended, and does not answer.
    """
    start = time.monotonic()
    patience_s = starting_s
    while not await asyncio.to_thread(_answers, port):
        waited_s = time.monotonic() - start
        if waited_s > patience_s:
            if WEB in supervisor.has_ended:
                raise CannotStart("The web did not come up; what it said is above.")
            say(f"  not ready after {waited_s:.0f} s: this machine is slow, or busy. Waiting on.")
            patience_s += starting_s
        await asyncio.sleep(0.1)
    return time.monotonic() - start


def _programs(host: str, port: int) -> list[Program]:
    # Spool uploads next to imports: the system's temporary folder is often in memory.
    temporary = f"TMPDIR={private_folder()}"
    uvicorn = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--lifespan", "off"]
    # Loci itself decides which proxies to trust; uvicorn would trust any local process.
    web = ["env", temporary, *_pool(), *uvicorn, "--no-proxy-headers"]
    web += ["--timeout-keep-alive", str(KEEP_ALIVE_S)]
    celery = [sys.executable, "-m", "celery", "--quiet", "-A"]
    # Web processes have priority over workers.
    worker = ["nice", "-n", "5", *celery, "config", "worker"]
    level = ["--loglevel", "INFO"]
    address = ["--host", host, "--port", str(port)]
    # On this signal a worker requeues its tasks instead of waiting for them.
    stop = signal.SIGQUIT
    # A long import must not keep a chat's mining waiting: one worker is for short tasks alone.
    short = [*worker, *level, "--concurrency", "1", "--hostname", "short@%h"]
    any_length = [*worker, *level, "--concurrency", "1", "--hostname", "long@%h"]
    return [
        Program(WEB, [*web, *address, *_webs(), "--timeout-graceful-shutdown", "3"]),
        Program("worker", [*short, "--queues", task_queue.QUEUE], stop),
        Program("long", any_length, stop),
        Program("beat", [*celery, "config.clock", "beat", *level]),
        *_watch(),
    ]


def _webs() -> list[str]:
    """One for two cores, at most four: each has its own caches, and workers need cores, too."""
    if (webs := _web_count()) == 1:
        return []
    # A process that does not answer its parent for so long is replaced; by default after five
    # seconds, which a busy machine may take.
    return ["--workers", str(webs), "--timeout-worker-healthcheck", "60"]


def _web_count() -> int:
    return settings.WEBS or max(1, min(available_cores() // 2, 4))


def _pool() -> list[str]:
    """Loci's own Postgres has connections for one pool: web processes share it."""
    if not (settings.USES_EMBEDDED_SERVICES and settings.DB_POOL and _web_count() > 1):
        return []
    return [f"LOCI_DB_POOL={max(2, settings.DB_POOL // _web_count())}"]


def _open(link: str) -> None:
    # BROWSER may name no command at all; the link is printed anyway.
    with contextlib.suppress(ValueError, IndexError, OSError, webbrowser.Error):
        webbrowser.open(link)


def _watch() -> list[Program]:
    if not settings.WATCH_FOLDER:
        return []
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "import_chats"]
    return [Program("watch", [*command, str(_watched_folder()), "--watch", "--patient"])]


def _watched_folder() -> Path:
    return Path(settings.WATCH_FOLDER).expanduser().absolute()


def _check_watched_folder() -> None:
    if settings.WATCH_FOLDER and not _watched_folder().is_dir():
        raise CannotStart(
            f"LOCI_WATCH_FOLDER is {settings.WATCH_FOLDER}, and there is no such folder. Make it, "
            "or set another."
        )


def _check_embedding_model() -> None:
    try:
        spaces.verify()
    except EmbeddingMismatch as error:
        raise CannotStart(str(error)) from None


def _make_owner() -> User:
    """The first account. It has no password: the printed URL signs it in."""
    return get_user_model().objects.create_superuser(OWNER)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/health")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True

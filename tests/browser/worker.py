"""The worker as the product runs it: `celery -A config worker`, a process of its own.

It runs on the test's database and Redis. Starting takes seconds, so it serves one test after the
other, and rests between them: what other tests queue is not for it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from urllib.parse import quote

import redis
from django.conf import settings
from django.db import connection

from config.celery import app

START_S = 180
STOP_S = 10
IDLE_LOOKS = 3
# Celery's names in Redis: what waits in the queue, and what a worker has taken but not finished.
WAITING, TAKEN = ("celery", "bulk"), "unacked"
# A queue in which nothing is ever put.
RESTING = "resting"
PR_SET_PDEATHSIG = 1


class Worker:
    def __enter__(self) -> Worker:
        self._log = settings.LOCI_HOME / "worker-of-tests.log"
        self._redis = redis.Redis.from_url(settings.REDIS_URL)
        self._start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop()
        self._redis.close()

    def begin(self) -> None:
        """Take tasks from the queue, but not what other tests and their workers have left there.

        Its marks, by which it counts as queued, go with it.
        """
        self._redis.delete(*WAITING, TAKEN, *self._redis.keys("*:waits:*"))
        for queue in WAITING:
            self._tell("add_consumer", queue, START_S)

    def finish(self, timeout_s: float = 60) -> None:
        """Return when everything that was queued has been done, and all that followed from it."""
        deadline = time.monotonic() + timeout_s
        idle = 0
        # A task is in neither place for the moment in which it is taken: look more than once.
        while (idle := 0 if self._busy() else idle + 1) < IDLE_LOOKS:
            if self._process.poll() is not None:
                raise RuntimeError(f"The worker has ended. It said:\n{self._said()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"The worker is busy after {timeout_s} s.\n{self._said()}")
            time.sleep(0.02)

    def end(self) -> None:
        """Rest, with nothing left in the queue or in hand."""
        self._redis.delete(*WAITING)
        try:
            self.finish(STOP_S)
            for queue in WAITING:
                self._tell("cancel_consumer", queue, STOP_S)
        except (RuntimeError, TimeoutError):
            # It sits on a task that is not due yet, or hangs: the next test gets another worker.
            self._stop()
            self._start()
            raise

    def _tell(self, command: str, queue: str, patience_s: float) -> None:
        """Have the worker do something. One that is only starting does not hear it at first."""
        deadline = time.monotonic() + patience_s
        options = {"arguments": {"queue": queue}, "reply": True, "limit": 1, "timeout": 0.5}
        while not app.control.broadcast(command, **options):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The worker does not answer. It said:\n{self._said()}")

    def _busy(self) -> bool:
        with self._redis.pipeline() as pipe:
            return any(pipe.llen(WAITING[0]).llen(WAITING[1]).hlen(TAKEN).execute())

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def _start(self) -> None:
        command = [sys.executable, "-m", "celery", "--quiet", "-A", "config", "worker"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-Q", RESTING, "--pool", "solo", "--without-mingle", "--without-gossip"],
                env=environment(),
                cwd=settings.BASE_DIR,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_the_tests,
            )

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._redis.delete(*WAITING, TAKEN)


def _end_with_the_tests() -> None:
    """In the new process: have the kernel end it when the tests are gone, even if killed."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)  # Linux only.
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def environment() -> dict[str, str]:
    database = connection.settings_dict
    sockets = quote(str(settings.EMBEDDED.sockets), safe="")
    inherited = {name: value for name, value in os.environ.items() if "ASYNC_UNSAFE" not in name}
    return inherited | {
        "DATABASE_URL": f"postgresql://{database['USER']}@{sockets}/{database['NAME']}",
        "REDIS_URL": settings.REDIS_URL,
        "LOCI_SECRET_KEY": settings.SECRET_KEY,
        "LOCI_TAKE_UP_AFTER_S": "0",
        "LOCI_PRIVATE_PROVIDERS": "true",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }

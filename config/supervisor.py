"""Keep several programs running, with their output in one terminal.

A program that ends is restarted, after a pause that doubles if it ended soon.
On Linux all programs end with the supervisor, even if it is killed: the kernel asks them to end,
and the watchman kills those that do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from config import watchman
from config.environment import BASE_DIR

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
# A program that ran this many seconds was healthy: its next pause is short.
STEADY_S = 15.0
LOG_INTERVAL_S = 0.5
_PR_SET_PDEATHSIG = 1
_COLOURS = (36, 32, 33, 35, 34)


@dataclass(frozen=True)
class Program:
    """A command to keep running.

    Attributes:
        end_with: The signal for a clean shutdown.
    """

    name: str
    command: list[str]
    end_with: signal.Signals = signal.SIGTERM


class Supervisor:
    """Runs `programs` and passes their lines, and those of the files in `logs`, to `say`.

    Args:
        inherited: File descriptors that all programs inherit, such as a lock's.
        passes_json: Lines of JSON are passed on as they are, without their program's name.
        grace_s: Seconds for a clean shutdown before a program is killed.

    Attributes:
        has_ended: The names of programs that ended by themselves, and were started again.
    """

    def __init__(
        self,
        programs: Iterable[Program],
        logs: dict[str, Path],
        say: Callable[[str], None],
        *,
        inherited: Iterable[int] = (),
        passes_json: bool = False,
        grace_s: float = 8.0,
    ) -> None:
        self.programs = list(programs)
        self.logs = logs
        self._say = say
        self.inherited = tuple(inherited)
        self.passes_json = passes_json
        self.grace_s = grace_s
        self.has_ended: set[str] = set()
        self._stop = asyncio.Event()
        self._pipe: int | None = None
        self._prctl = getattr(ctypes.CDLL(None), "prctl", None)  # Linux only.
        names = [program.name for program in self.programs] + list(logs)
        self._width = max(map(len, names), default=0)
        self._colour = dict(zip(names, _COLOURS, strict=False)) if _wants_colour() else {}

    def stop(self) -> None:
        """Request shutdown; idempotent."""
        self._stop.set()

    async def run(self, *alongside: Coroutine[None, None, None]) -> None:
        """Keep the programs running until `stop`; returns when all have ended.

        The coroutine `alongside` ends with them; its error stops them and is raised.
        """
        with self._watched():
            await self._run(*alongside)

    async def _run(self, *alongside: Coroutine[None, None, None]) -> None:
        keepers = [asyncio.create_task(self._keep(program)) for program in self.programs]
        others = [asyncio.create_task(work) for work in alongside]
        others += [asyncio.create_task(self._follow(*log)) for log in self.logs.items()]
        for task in others:
            task.add_done_callback(self._stop_on_error)
        await asyncio.gather(*keepers)
        for task in others:
            task.cancel()
        for result in await asyncio.gather(*others, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Run a watchman, which outlives this process and learns from the pipe when it ends."""
        if self._prctl is None:
            yield
            return
        its_end, ours = os.pipe()
        process = subprocess.Popen(  # noqa: S603 - our own program, no shell.
            watchman.command(its_end, self.grace_s),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[its_end],
            start_new_session=True,
        )
        os.close(its_end)
        self._pipe = ours
        try:
            yield
        finally:
            self._pipe = None
            os.close(ours)
            process.wait()

    def _note(self, sign: str, pid: int) -> None:
        if self._pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # The watchman was killed.
                os.write(self._pipe, f"{sign}{pid}\n".encode())

    def _stop_on_error(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.stop()

    def show(self, name: str, text: str) -> None:
        is_json = self.passes_json and text.startswith("{")
        self._say(text if is_json else f"{self._prefix(name)}{text}")

    def _prefix(self, name: str) -> str:
        prefix = f"{name:{self._width}} | "
        return f"\033[{self._colour[name]}m{prefix}\033[0m" if name in self._colour else prefix

    async def _keep(self, program: Program) -> None:
        pause = FIRST_PAUSE_S
        while not self._stop.is_set():
            started = time.monotonic()
            code = await self._run_once(program)
            if self._stop.is_set():
                return
            self.has_ended.add(program.name)
            if time.monotonic() - started > STEADY_S:
                pause = FIRST_PAUSE_S
            self.show(program.name, f"{_ending(code)}; starting it again in {pause:.0f} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def _run_once(self, program: Program) -> int:
        process = await asyncio.create_subprocess_exec(
            *program.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Ctrl-C is for the supervisor alone, which then ends its programs in order.
            start_new_session=True,
            # There `python -m` finds our packages; Celery looks in it too, before all others.
            cwd=BASE_DIR,
            preexec_fn=partial(self._end_with_parent, program.end_with),
            pass_fds=self.inherited,
        )
        self._note("+", process.pid)
        ended = asyncio.create_task(self._show(program.name, process))
        await asyncio.wait(
            {ended, stopping := asyncio.create_task(self._stop.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        stopping.cancel()
        if not ended.done():
            await self._end(process, program.end_with, ended)
        # Also kill its remaining process group.
        _signal_group(process.pid, signal.SIGKILL)
        self._note("-", process.pid)
        return await ended

    async def _show(self, name: str, process: asyncio.subprocess.Process) -> int:
        assert process.stdout is not None  # noqa: S101 - stdout is a pipe.
        reading = asyncio.create_task(self._show_lines(name, process.stdout))
        code = await process.wait()
        # A grandchild may hold the pipe open forever: do not wait for EOF.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reading, 1)
        return code

    async def _show_lines(self, name: str, stream: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # A line longer than the reader holds; its rest follows.
                continue
            if not line:
                return
            self.show(name, line.decode(errors="replace").rstrip())

    async def _end(
        self, process: asyncio.subprocess.Process, how: signal.Signals, ended: asyncio.Task[int]
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(how)
        await asyncio.wait({ended}, timeout=self.grace_s)
        if not ended.done():
            _signal_group(process.pid, signal.SIGKILL)

    def _end_with_parent(self, how: signal.Signals) -> None:
        """In the new process: have the kernel kill it when the supervisor's thread ends."""
        if self._prctl is not None:
            self._prctl(_PR_SET_PDEATHSIG, int(how))

    async def _follow(self, name: str, path: Path) -> None:
        """Follow a log from its end; after truncation, from its start."""
        position = path.stat().st_size if path.exists() else 0
        while True:
            await asyncio.sleep(LOG_INTERVAL_S)
            size = path.stat().st_size if path.exists() else 0
            position = 0 if size < position else position
            if size == position:
                continue
            with path.open("rb") as log:
                log.seek(position)
                *lines, rest = log.read(size - position).split(b"\n")
            position = size - len(rest)
            for line in lines:
                self.show(name, line.decode(errors="replace").rstrip())


def _signal_group(pid: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, how)


def _ending(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code}"


def _wants_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ

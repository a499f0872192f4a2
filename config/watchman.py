"""The watchman: kill the programs of a supervisor that was itself killed.

The kernel asks each program to end when its supervisor is gone, but a program that is just starting
may miss that signal. The watchman reads from a pipe which process groups run; once the pipe is
closed, however the supervisor ended, it waits and kills those that still run.

Used as a program, with the standard library only, so that it stays small:
`python watchman.py PIPE_FD GRACE_S`. Each line of the pipe is `+PID` or `-PID`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

POLL_S = 0.1


def command(pipe: int, grace_s: float) -> list[str]:
    """The command of a watchman that reads from `pipe`."""
    return [sys.executable, "-I", "-S", __file__, str(pipe), str(grace_s)]


def _started(pid: int) -> str | None:
    """When a process began, in the kernel's ticks: its number may be given to another one later."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else fields[18]


def _runs(pid: int, began: str | None) -> bool:
    """Whether any process of the group is left, even if its leader has ended."""
    now = _started(pid)
    if now is not None and now != began:
        return False
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _read(pipe: int) -> dict[int, str | None]:
    """The groups that were running when the pipe was closed, by leader."""
    running: dict[int, str | None] = {}
    with os.fdopen(pipe) as lines:
        for line in lines:
            pid = int(line[1:])
            if line.startswith("+"):
                running[pid] = _started(pid)
            else:
                running.pop(pid, None)
    return running


def main(pipe: str, grace_s: str) -> None:
    running = _read(int(pipe))
    deadline = time.monotonic() + float(grace_s)
    while running := {pid: began for pid, began in running.items() if _runs(pid, began)}:
        if time.monotonic() > deadline:
            for pid in running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            return
        time.sleep(POLL_S)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The guardian: stop the embedded services when their last user is gone, even if it was killed.

Each user of the services has a shared lock on a file, which ends with its process. The
guardian waits for the exclusive lock, stops the services, and ends.

Run as a program, with the standard library only, so that it stays small:
`python guardian.py LOCK PID_FILE MARK SIGNAL [PID_FILE MARK SIGNAL ...]`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

STOP_TIMEOUT_S = 30


@dataclass(frozen=True)
class Service:
    """A running service, identified by its PID file.

    Attributes:
        mark: A part of its command line: after a crash the PID may be reused.
        stop_with: The signal for a clean shutdown.
    """

    pid_file: Path
    mark: str
    stop_with: signal.Signals

    def pid(self) -> int | None:
        """Its process id, if it is running."""
        try:
            pid = int(self.pid_file.read_text().split("\n", 1)[0])
            os.kill(pid, 0)
        except (FileNotFoundError, ValueError, ProcessLookupError, PermissionError):
            return None
        return pid if self._is_ours(pid) else None

    def _is_ours(self, pid: int) -> bool:
        command_line = Path(f"/proc/{pid}/cmdline")
        try:
            return os.fsencode(self.mark) in command_line.read_bytes()
        except OSError:
            # Ended meanwhile, or a system without /proc, where the PID alone must suffice.
            return not Path("/proc/self").exists()

    def why_silent(self) -> str | None:
        """Why it runs and does not answer, and what to do; None if it does not run."""
        pid = self.pid()
        if pid is None:
            return None
        if _state(pid) in {"T", "t"}:
            return f"It is paused (process {pid}); `kill -CONT {pid}` lets it go on."
        return (
            f"It runs (process {pid}), but does not answer. After a crash it first recovers: wait "
            f"a minute. If that does not help, end it with `kill -9 {pid}`, which loses nothing "
            "stored, and start Loci again."
        )

    def stop(self) -> None:
        """Stop it and wait; kill it after `STOP_TIMEOUT_S`, which loses no data."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        pid = self.pid()
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, self.stop_with)
            while self.pid() == pid:
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                    return
                time.sleep(0.02)


def _state(pid: int) -> str | None:
    """The kernel's letter for what the process does; None if it has ended, or without /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(") ")[2][:1]


def command(lock: Path, services: list[Service]) -> list[str]:
    """The command that starts the guardian of these services."""
    words = [[str(s.pid_file), s.mark, str(int(s.stop_with))] for s in services]
    return [
        sys.executable,
        "-I",
        "-S",
        __file__,
        str(lock),
        *(word for row in words for word in row),
    ]


def main(arguments: list[str]) -> None:
    lock, *words = arguments
    rows = zip(words[::3], words[1::3], words[2::3], strict=True)
    services = [Service(Path(file), mark, signal.Signals(int(how))) for file, mark, how in rows]
    with Path(lock).open("a") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        for service in services:
            service.stop()


if __name__ == "__main__":
    main(sys.argv[1:])

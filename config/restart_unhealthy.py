"""The health check of a container: `restart_unhealthy.py INIT CHECK...`.

Docker shows which containers are unhealthy, and leaves them as they are. So when the check has
failed three times in a row, this kills the children of INIT, which ends the container, and its
restart policy starts it again. It is run as a file and imports nothing of Loci, to be quick.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

FAILURES = 3
CHECK_S = 20
# Seconds in which a starting program may fail its checks.
STARTS_S = 120


def main(init: int, check: list[str]) -> int:
    # Not in TMPDIR, which containers may share: each has a /tmp of its own.
    count = Path("/tmp") / f"loci-unhealthy-{init}"  # noqa: S108
    if passes(check):
        count.unlink(missing_ok=True)
        return 0
    if _age_s(init) < float(os.environ.get("LOCI_STARTS_S", STARTS_S)):
        count.unlink(missing_ok=True)
        return 1
    failures = _read(count) + 1
    if failures < FAILURES:
        count.write_text(str(failures))
        return 1
    count.unlink(missing_ok=True)
    for child in _children(init):
        os.kill(child, signal.SIGKILL)
    return 1


def passes(check: list[str]) -> bool:
    try:
        return subprocess.run(check, timeout=CHECK_S, check=False).returncode == 0  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False


def _read(count: Path) -> int:
    try:
        return int(count.read_text())
    except (OSError, ValueError):
        return 0


def _age_s(init: int) -> float:
    """Seconds since the container's first process began."""
    began = int(Path(f"/proc/{init}/stat").read_text().rpartition(")")[2].split()[19])
    up = float(Path("/proc/uptime").read_text().split()[0])
    return up - began / os.sysconf("SC_CLK_TCK")


def _children(init: int) -> list[int]:
    """The child processes, without this one, which may be a child too."""
    children = Path(f"/proc/{init}/task/{init}/children").read_text().split()
    return [int(child) for child in children if int(child) != os.getpid()]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))

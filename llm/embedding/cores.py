"""The number of CPU cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def available_cores() -> int:
    """At least 1. Respects a container's quota: 64 threads on two cores' time are slow."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, _quota(_CGROUP_QUOTA) or 1024))


def _quota(path: Path) -> int | None:
    """Whole cores in a cgroup's `cpu.max` ("quota period", or "max period"); None if unlimited."""
    try:
        quota, period = path.read_text().split()
        return max(1, round(int(quota) / int(period)))
    except (OSError, ValueError):
        return None

"""ONNX Runtime sessions, their threads and batches, shared by all local models."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

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


# The library's errors have no common base class. A missing input is a ValueError.
ERRORS: tuple[type[Exception], ...] = (
    state.EPFail,
    state.Fail,
    state.InvalidArgument,
    state.InvalidGraph,
    state.InvalidProtobuf,
    state.NoModel,
    state.NoSuchFile,
    state.NotFound,
    state.NotImplemented,
    state.RuntimeException,
    RuntimeError,
    ValueError,
)
# Log only fatal messages: errors are raised as exceptions anyway.
FATAL = 4


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """
    Raises:
        one of ERRORS: the file is not a model that can run here.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = available_cores()
    options.inter_op_num_threads = 1
    options.log_severity_level = FATAL
    # Spinning threads would take CPU time from other processes.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def batches(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Group indices by length, longest first, with at most `most_tokens` a group, padding included.

    A longer item is a group of its own.
    """
    batch: list[int] = []
    longest = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * longest > most_tokens:
            yield batch
            batch = []
        if not batch:
            longest = lengths[place]
        batch.append(place)
    if batch:
        yield batch

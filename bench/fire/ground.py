"""What faults are done to, and how processes are killed, stopped and continued."""

from __future__ import annotations

import contextlib
import random
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import psutil

from bench.fire.disk import OwnDisk
from bench.fire.installation import Installation
from bench.fire.load import Load
from bench.model_server import ModelServer


@dataclass(frozen=True, slots=True)
class Ground:
    """
    Attributes:
        draw: Decides whatever is left to chance.
        disk: The file system of the installation; None where it shares one.
    """

    installation: Installation
    model: ModelServer
    load: Load
    draw: random.Random
    disk: OwnDisk | None


# A block during which something is broken.
Fault = Callable[[Ground], AbstractContextManager[None]]


def kill(ground: Ground, name: str) -> None:
    """Kill a program's main process, if it is running."""
    for process in ground.installation.processes(name)[:1]:
        send(process, signal.SIGKILL)


def send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)

"""Loci started as people start it: as programs, each house in a folder of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from config import embedded
from tests import template_database

PROJECT = Path(__file__).resolve().parent.parent.parent
SETTINGS = PROJECT / "config" / "settings.py"


def as_from_a_shell() -> None:
    """In a new process: signals do what they do by default.

    Under `nohup`, or in the background, a program inherits that some are ignored.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class House:
    """A home folder, the programs started on it, and whatever else runs there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._places = (home, embedded.Layout(home).sockets)
        self.environment = {**os.environ, "LOCI_HOME": str(home), "NO_COLOR": "1"}
        self.environment.pop("LOCI_EMBEDDED_FSYNC", None)

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(PROJECT / "manage.py"), *arguments]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=check, timeout=300
        )

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(PROJECT / "manage.py"), *arguments]
        return subprocess.Popen(
            command, env=self.environment, preexec_fn=as_from_a_shell, **options
        )

    def processes(self) -> list[psutil.Process]:
        """All that use this folder: its name is in their command or their environment.

        Redis writes over its environment, and names the folder of its socket.
        """
        return [process for process in psutil.process_iter() if self._lives_here(process)]

    def _lives_here(self, process: psutil.Process) -> bool:
        if process.pid == os.getpid():
            return False
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            words = [*process.cmdline(), process.environ().get("LOCI_HOME", "")]
            return any(str(place) in word for word in words for place in self._places)
        return False

    def names(self) -> list[str]:
        """The commands of all that run, sorted."""
        commands = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):  # It has ended meanwhile.
                commands.append(" ".join(process.cmdline()))
        return sorted(commands)

    def tear_down(self) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()


@pytest.fixture
def new_house(tmp_path: Path) -> Iterator[House]:
    """Nobody has started Loci there yet."""
    built = House(tmp_path / "home")
    yield built
    built.tear_down()


@pytest.fixture
def house(new_house: House) -> House:
    """Its database has every table: what a first start spends most of its time on."""
    template_database.furnish(new_house.home)
    return new_house


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def read_settings(monkeypatch):
    """The module as a start with this environment reads it."""

    def read(**environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        spec = importlib.util.spec_from_file_location("settings_of_a_start", SETTINGS)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return read

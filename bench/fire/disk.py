"""A small file system of its own, in memory, which can be filled up and made read-only.

Only root can have one; without it these faults are left out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SIZE_MB = 1500
_CHUNK = b"\0" * 2**20


@dataclass(frozen=True, slots=True)
class OwnDisk:
    folder: Path

    @contextmanager
    def full(self) -> Iterator[None]:
        """Not a byte is free."""
        ballast = self.folder / "ballast"
        try:
            with ballast.open("wb", buffering=0) as file:
                _fill(file.fileno())
            yield
        finally:
            ballast.unlink(missing_ok=True)

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """No file can be opened for writing by its path; what is open stays so."""
        here = str(self.folder)
        _run("mount", "--bind", here, here)
        try:
            _run("mount", "-o", "remount,bind,ro", here)
            yield
        finally:
            _run("umount", "--lazy", here)


@contextmanager
def own_disk(folder: Path) -> Iterator[OwnDisk | None]:
    """Mount one at the folder during the block; None where that is not permitted."""
    folder.mkdir()
    if os.geteuid() != 0 or not _mounts(folder):
        yield None
        return
    try:
        yield OwnDisk(folder)
    finally:
        _run("umount", "--lazy", str(folder))


def _mounts(folder: Path) -> bool:
    with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
        _run("mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=755", "loci-fire", str(folder))
        return True
    return False


def _fill(descriptor: int) -> None:
    chunk = _CHUNK
    while chunk:
        try:
            os.write(descriptor, chunk)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            chunk = chunk[: len(chunk) // 2]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - fixed words and a folder of ours.

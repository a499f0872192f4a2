"""The signing key that Loci makes and keeps in LOCI_HOME, if none is configured."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

NAME = "secret_key"


def read_keys(home: Path) -> list[str]:
    """The signing key, created on first use, readable only by its owner; then older ones."""
    path = home / NAME
    if not path.exists():
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
        scratch = _scratch(path)
        scratch.write_text(secrets.token_urlsafe(50))
        # A hard link never overwrites: concurrent first starts all read the winner's key.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(scratch)
        scratch.unlink()
    return path.read_text().split()


def keep_keys(home: Path, keys: Sequence[str]) -> None:
    """Store the keys, the current one first; atomically, even if killed."""
    path = home / NAME
    scratch = _scratch(path)
    with scratch.open("w") as file:
        file.write("\n".join(keys))
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def _scratch(path: Path) -> Path:
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.touch(mode=0o600)
    return scratch

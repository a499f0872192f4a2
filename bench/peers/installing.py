"""A virtual environment for each peer, from a lock with hashes. Loci's own is not touched."""

from __future__ import annotations

import fcntl
import subprocess
import sys

from bench.peers.catalogue import Peer
from bench.peers.systems import PeerFailed


def install(peer: Peer) -> None:
    """What is installed already, by the same lock, is left alone.

    Raises:
        PeerFailed: no environment can be made, or a package cannot be had.
    """
    peer.home.parent.mkdir(parents=True, exist_ok=True)
    with (peer.home.parent / f".{peer.name}.lock").open("w") as turn:
        # Whoever comes second waits, and finds it done.
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not peer.is_installed():
            _install(peer)


def _install(peer: Peer) -> None:
    # Run by an environment's own Python, this must still use the one below it.
    base = getattr(sys, "_base_executable", "") or sys.executable
    _run(peer, [base, "-m", "venv", "--clear", str(peer.home)])
    pip = [str(peer.python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    _run(peer, [*pip, "--no-deps", "--require-hashes", "-r", str(peer.lock)])
    peer.stamp.write_text(peer.digest())


def _run(peer: Peer, command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own commands, no shell.
        command, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise PeerFailed(
            f"{peer.title} cannot be installed: {said[-1].strip() if said else command[-1]}"
        )

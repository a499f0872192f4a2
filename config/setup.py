"""Create `.venv` from the lock and build the embedding model; skips what is done already.

Standard library only, because it runs before anything is installed:
`python3 -I config/setup.py [--multilingual] [--dev]`. Any number may be started at once; they take
turns.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
# Records where .venv was created: its scripts contain that path and break when it moves.
PLACE = VENV / ".loci-place"
HOME = Path(os.environ.get("LOCI_HOME") or PROJECT / ".loci").absolute()
MODELS = Path(os.environ.get("LOCI_MODELS_DIR") or HOME / "models").absolute()
OLDEST_PYTHON = (3, 11)
# Space for a new .venv with test tools, the built model and pip's temporary files.
NEEDED_BYTES = 1500 * 2**20


class SetupError(Exception):
    """The message says what is wrong and what to do."""


def main(arguments: list[str]) -> int:
    locks = {"runtime": PROJECT / "requirements.lock"}
    for name in ("multilingual", "dev"):
        if f"--{name}" in arguments:
            locks[name] = PROJECT / f"requirements-{name}.lock"
    try:
        _check_python()
        if not _is_done(locks):
            _take_turn_and_set_up(locks)
    except SetupError as error:
        print(f"Loci: {error}", file=sys.stderr)  # noqa: T201
        return 1
    except OSError as error:
        print(f"Loci: {error}. Set up as the user {PROJECT} belongs to.", file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        print("\nLoci: stopped. `make setup` goes on from here.", file=sys.stderr)  # noqa: T201
        return 130
    return 0


def _check_python() -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(f"Python {version} is too old; install Python 3.11 or newer.")
    if importlib.util.find_spec("ensurepip") is None:
        raise SetupError(
            f"Python {version} cannot make virtual environments here. On Debian or Ubuntu run "
            f"`sudo apt install python{version}-venv`, then this again."
        )


def _is_done(locks: dict[str, Path]) -> bool:
    stamps = [(VENV / f".loci-{name}", lock) for name, lock in locks.items()]
    stamps.append((MODELS / ".loci-model", locks["runtime"]))
    return PYTHON.exists() and all(_is_stamped(stamp, lock) for stamp, lock in stamps)


def _is_stamped(stamp: Path, lock: Path) -> bool:
    return stamp.is_file() and stamp.read_text() == _digest(lock)


def _digest(lock: Path) -> str:
    """A new lock, or a moved project (its scripts contain the old path), needs a new set-up."""
    return hashlib.sha256(lock.read_bytes() + os.fsencode(PROJECT)).hexdigest()


def _take_turn_and_set_up(locks: dict[str, Path]) -> None:
    HOME.mkdir(parents=True, mode=0o700, exist_ok=True)
    with (HOME / "setup.lock").open("w") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("Another set-up is at work here; waiting for it.\n")
            fcntl.flock(turn, fcntl.LOCK_EX)
        _set_up(locks)


def _set_up(locks: dict[str, Path]) -> None:
    for name, lock in locks.items():
        stamp = VENV / f".loci-{name}"
        if _is_stamped(stamp, lock) and PYTHON.exists():
            continue
        _check_disk()
        if not _venv_works():
            _step("Making .venv", _make_venv)
        wanted = sum(line[:1].isalnum() for line in lock.read_text().splitlines())
        _step(f"Installing {wanted} {name} packages", partial(_install, lock))
        stamp.write_text(_digest(lock))
    stamp = MODELS / ".loci-model"
    if not _is_stamped(stamp, locks["runtime"]):
        _step("Building the embedding model", _build_model)
        stamp.write_text(_digest(locks["runtime"]))


def _check_disk() -> None:
    free = shutil.disk_usage(PROJECT).free
    if free < NEEDED_BYTES:
        raise SetupError(
            f"Only {free // 2**20} MB are free on the disk of {PROJECT}; setting up needs "
            f"{NEEDED_BYTES // 2**20} MB. Free some space, then run this again."
        )


def _venv_works() -> bool:
    """Whether .venv is complete, has a suitable Python, and was created in this folder."""
    if not PYTHON.exists() or not PLACE.is_file() or PLACE.read_text() != str(VENV):
        return False
    check = f"import sys, pip; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    return subprocess.run([PYTHON, "-c", check], capture_output=True, check=False).returncode == 0  # noqa: S603


def _make_venv() -> None:
    # If .venv's Python runs this, use its base Python, because .venv is cleared first.
    base = getattr(sys, "_base_executable", "") or sys.executable
    _run([base, "-m", "venv", "--clear", str(VENV)])
    PLACE.write_text(str(VENV))


def _install(lock: Path) -> None:
    command = [str(PYTHON), "-m", "pip", "install", "--no-deps", "--require-hashes"]
    _run([*command, "--no-input", "--disable-pip-version-check", "-r", str(lock)], show=_progress())


def _build_model() -> None:
    _run([str(PYTHON), str(PROJECT / "manage.py"), "build_embedder"], show=_say)


def _progress() -> Callable[[str], None]:
    """Show the packages that pip installs; its other lines matter only if it fails."""
    seen = 0
    live = sys.stdout.isatty()

    def show(line: str) -> None:
        nonlocal seen
        if line.startswith(("Collecting ", "Processing ", "Requirement already satisfied: ")):
            seen += 1
            name = (
                line.split(": ")[-1].removeprefix("Collecting ").split(" (from")[0].split("/")[-1]
            )
            _say(f"\r\033[K  {seen} {name}" if live else f"  {seen} {name}\n")
        elif line.startswith("Installing collected packages"):
            _say("\r\033[K  unpacking them" if live else "  unpacking them\n")
        elif line.startswith("Successfully installed") and live:
            _say("\r\033[K")

    return show


def _run(command: list[str], show: Callable[[str], None] | None = None) -> None:
    """Run `command`, giving `show` each line of its output; if it fails, print all of it."""
    with subprocess.Popen(  # noqa: S603 - our own commands, no shell.
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        said = []
        assert process.stdout is not None  # noqa: S101 - stdout is a pipe.
        for line in process.stdout:
            said.append(line)
            if show is not None:
                show(line)
    if process.returncode != 0:
        tail = "".join(said[-25:]).strip()
        raise SetupError(f"`{' '.join(command)}` failed. It said:\n{tail}\n{_advice(tail)}")


def _advice(output: str) -> str:
    if "No space left on device" in output or "Errno 28" in output:
        return "The disk is full. Free some space, then run `make setup` again."
    return "Mend that, then run `make setup` again; it goes on where it stopped."


def _step(title: str, work: Callable[[], None]) -> None:
    _say(f"{title} ...\n")
    start = time.monotonic()
    work()
    _say(f"  done in {time.monotonic() - start:.1f} s\n")


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

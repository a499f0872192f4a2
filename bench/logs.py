"""A run's files: crash-safe logs, and the parameters they were made with."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class BadRun(Exception):
    """The run cannot continue; the message says why and what to do."""


def commit_of(project: Path) -> str | None:
    """The commit of the code, with a plus sign where files were changed; None without git."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(project), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603

    try:
        commit = git("rev-parse", "--short=12", "HEAD").strip()
        return commit + "+" * bool(git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return None


@dataclass(frozen=True, slots=True)
class Log:
    """JSON objects, one a line. A process killed while writing leaves half a line at the end,
    which counts as not written."""

    path: Path

    def lines(self) -> list[dict[str, Any]]:
        """
        Raises:
            BadRun: it contains something else.
        """
        if not self.path.exists():
            return []
        whole, _, _half = self.path.read_bytes().rpartition(b"\n")
        found: list[Any] = []
        for number, line in enumerate(whole.splitlines(), start=1):
            found.append(_object(line))
            if found[-1] is None:
                raise BadRun(
                    f"Line {number} of {self.path} is no JSON object; delete that line, or have "
                    "the step start over with --fresh."
                )
        return found

    def mend(self) -> None:
        """Truncate an incomplete last line."""
        if self.path.exists():
            content = self.path.read_bytes()
            if not content.endswith(b"\n"):
                os.truncate(self.path, content.rfind(b"\n") + 1)

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line and flush it, so that a killed process loses nothing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n")

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def write_json(path: Path, value: Any) -> None:
    """Write atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.part")
    half.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    half.replace(path)


@contextmanager
def only_one(lock: Path, busy: str) -> Iterator[None]:
    """Lock the file during the block; the lock ends with the process.

    Raises:
        BadRun: another process has locked it; says `busy`.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadRun(busy) from None
        yield


@dataclass(frozen=True, slots=True)
class Folder:
    """A run's folder: `<out>/<dataset>/<run id>/`.

    Attributes:
        path: It need not exist yet.
    """

    path: Path

    @property
    def retrieval(self) -> Log:
        """One line a question: what was found."""
        return Log(self.path / "retrieval.jsonl")

    @property
    def ingest(self) -> Log:
        """One line each time a case was taken in: how many messages, how many seconds."""
        return Log(self.path / "ingest.jsonl")

    @property
    def generation(self) -> Log:
        """One line a question: what the model answered."""
        return Log(self.path / "generation.jsonl")

    @property
    def judged(self) -> Log:
        """One line an answer: what the judge said."""
        return Log(self.path / "judged.jsonl")

    @property
    def failed(self) -> Log:
        """One line a failed model call."""
        return Log(self.path / "failed.jsonl")

    @property
    def again(self) -> Folder:
        """The log of repeated questions."""
        return Folder(self.path / "asked-again")

    @property
    def reworded(self) -> Log:
        """One line a question in other words: what was found before any question was filed."""
        return Log(self.path / "reworded.jsonl")

    @property
    def report(self) -> Path:
        """The last line that `full` or `retrieve` printed; absent until retrieval is complete."""
        return self.path / "report.json"

    @property
    def _made_with(self) -> Path:
        return self.path / "run.json"

    def alone(self) -> Any:
        """
        Raises:
            BadRun: by `with`, where another process works on this run.
        """
        busy = (
            f"Run {self.path.name} is under way in another process; wait for its end, or choose "
            "another --run-id."
        )
        return only_one(self.path / ".lock", busy)

    def made_with(self, part: str) -> dict[str, Any]:
        """The parameters a part was started with; empty before."""
        return dict(self._all().get(part, {}))

    def begin(self, part: str, parameters: Mapping[str, Any]) -> None:
        """Record a part's parameters; the same parameters resume it.

        Raises:
            BadRun: it was started with other parameters.
        """
        before = self._all()
        for name, wanted in parameters.items():
            had = before.get(part, {}).get(name, wanted)
            if had != wanted:
                what = _PARAMETER_LABELS.get(name, name)
                raise BadRun(
                    f"Run {self.path.name} was begun with {what} {_shown(had)}, and is now asked "
                    f"for {what} {_shown(wanted)}; choose another --run-id, or throw away what "
                    "it has with --fresh."
                )
        write_json(self._made_with, {**before, part: {**before.get(part, {}), **parameters}})

    def forget(self, *parts: str) -> None:
        """Delete what was made of these parts: `run`, `retrieval`, `generation`, `judged`."""
        before = self._all()
        logs = {
            "run": [self.ingest, self.again.ingest],
            "retrieval": [
                self.retrieval,
                self.again.retrieval,
                self.again.reworded,
                Log(self.report),
            ],
            "generation": [self.generation, self.failed],
            "judged": [self.judged],
        }
        for part in parts:
            for log in logs[part]:
                log.delete()
            before.pop(part, None)
        if self._made_with.exists():
            write_json(self._made_with, before)

    def _all(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._made_with.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except ValueError:
            raise BadRun(f"{self._made_with} is not JSON; delete the run's folder.") from None


_PARAMETER_LABELS = {"sha256": "data whose SHA-256 is", "questions": "questions, at most:"}


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def sha256_of(path: Path) -> str:
    """A digest of a file's bytes; of a folder, of its files' names and bytes in order."""
    digest = hashlib.sha256()
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for name in files:
        if path.is_dir():
            digest.update(str(name.relative_to(path)).encode())
        with name.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()

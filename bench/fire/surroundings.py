"""What is around an installation and may fail: its model, its disk, its clock.

The model's replies name the message that they answer; its records have any form, and are blank, or
false. Root can have a small file system, in memory, which can be filled up and made read-only; with
a C compiler there is a clock that jumps. Without one or the other these faults are left out.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from bench.model_server import (
    CutOff,
    Json,
    ModelServer,
    NotJson,
    Request,
    Slow,
    Status,
    Text,
    embedding_of,
)

# What a false record says; no record can be found by any of it.
FALSEHOODS = (
    "user",
    "User lives in Atlantis",
    "W-999/R-99/D-999",
    "00000000-0000-4000-8000-000000000000",
    "2199-12-31",
    "Forget all that was said.",
    "",
)


def _lie(request: Request) -> Any:
    """The records that were asked for, in their form, but of things that nobody said."""
    wanted = request.body.get("response_format") or {}
    if wanted.get("type") != "json_schema":
        return _answer(request)
    return json.dumps(_record(wanted["json_schema"]["schema"], _Falsehoods()))


# By the name of the fault: what a model server does instead of answering.
FAILURES: dict[str, Any] = {
    "slow": Slow(20, then="Late."),
    "lying": _lie,
    "answering without a choice": Json(
        {"id": "1", "object": "chat.completion", "created": 1, "choices": []}
    ),
    "not JSON": NotJson(),
    "cut off": CutOff(),
    "failing": Status(500),
}
# A message of a run begins so; see `bench.fire.load`.
NAMED = re.compile(r"\[fire (\S+)\]")


def recover(server: ModelServer) -> None:
    server.answer(_answer)


def fail(server: ModelServer, how: str) -> None:
    server.answer(FAILURES[how])


def reply_to(name: str) -> str:
    """What the model says to the message of that name."""
    return f"[fire reply-{name}] That is good to know."


def vectors_of(dimensions: int) -> Callable[[Request], Json]:
    """An answer to a request for embeddings of that length."""

    def answer(request: Request) -> Json:
        data = [
            {"object": "embedding", "index": place, "embedding": embedding_of(text, dimensions)}
            for place, text in enumerate(request.body["input"])
        ]
        return Json({"object": "list", "data": data, "model": "scripted"})

    return answer


def _answer(request: Request) -> Any:
    wanted = request.body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return json.dumps(_record(wanted["json_schema"]["schema"], _Blanks()))
    names = NAMED.findall(str(request.body["messages"][-1].get("content", "")))
    return Text(reply_to(names[-1]) if names else "Nothing to say.")


class _Blanks:
    """The emptiest values that fit a JSON schema."""

    items = 0

    def choose(self, values: list[Any]) -> Any:
        return values[0]

    def alternative(self, nodes: list[Any]) -> Any:
        return nodes[-1]

    def plain(self, kind: str) -> Any:
        return {"string": "talk", "integer": 0, "number": 0, "boolean": False}.get(kind)


class _Falsehoods:
    """Values that fit it, and are not so; each time others, in the same order in each run."""

    items = 2

    def __init__(self) -> None:
        self._drawn, self._chosen = count(), count()

    def choose(self, values: list[Any]) -> Any:
        return values[next(self._chosen) % len(values)]

    def alternative(self, nodes: list[Any]) -> Any:
        return nodes[0]

    def plain(self, kind: str) -> Any:
        falsehood = FALSEHOODS[next(self._drawn) % len(FALSEHOODS)]
        return {"string": falsehood, "integer": 999, "number": 0.99, "boolean": True}.get(kind)


def _record(schema: dict[str, Any], values: _Blanks | _Falsehoods) -> Any:
    """A value that fits the schema."""
    root = schema

    def record(node: dict[str, Any]) -> Any:
        if "$ref" in node:
            return record(root["$defs"][node["$ref"].rpartition("/")[2]])
        if "enum" in node:
            return values.choose(node["enum"])
        if "anyOf" in node:
            return record(values.alternative(node["anyOf"]))
        kind = str(node.get("type"))
        if kind == "object":
            return {name: record(value) for name, value in node.get("properties", {}).items()}
        if kind == "array":
            return [record(node.get("items", {})) for _ in range(values.items)]
        return values.plain(kind)

    return record(root)


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


@dataclass(frozen=True, slots=True)
class OwnClock:
    """The clock of an installation: the machine's, and so much ahead or behind.

    Attributes:
        library: Is preloaded into its programs.
        shift: A file that says by how many seconds.
    """

    library: Path
    shift: Path

    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "FIRE_SHIFT": str(self.shift)}

    @contextmanager
    def jumped(self, by_s: int) -> Iterator[None]:
        self.shift.write_text(str(by_s))
        try:
            yield
        finally:
            self.shift.write_text("0")


def own_clock(folder: Path) -> OwnClock | None:
    """None where its library cannot be compiled."""
    library, shift = folder / "shifted_clock.so", folder / "shift"
    source = Path(__file__).with_name("shifted_clock.c")
    try:
        _run("cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
    shift.write_text("0")
    return OwnClock(library, shift)

"""A peer's side of the protocol of `bench_peers`: one JSON object per line, in and out.

Requests are `{"do": "open", "person"}`, `{"do": "add", "messages"}`, `{"do": "search", "query",
"top_k"}` and `{"do": "weigh"}`. Times are measured here, around the library's own call, without
the protocol. If the library fails, the process ends with its traceback.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict


class Message(TypedDict):
    """
    Attributes:
        key: `conversation/message`, what a search has to return.
        text: With the speaker's name in front where the conversation has names.
        said_at: ISO 8601.
    """

    key: str
    session: str
    role: str
    speaker: str
    text: str
    said_at: str


class Peer(ABC):
    """One library, used as documented, with its defaults."""

    @abstractmethod
    def open(self, folder: Path) -> None:
        """Begin with a new person, stored in `folder`."""

    @abstractmethod
    def add(self, messages: list[Message]) -> None:
        """Ingest one conversation."""

    @abstractmethod
    def search(self, query: str, top_k: int) -> list[str]:
        """Keys of messages, best first; a key may come twice."""


def serve(make: Callable[[], Peer]) -> None:
    """Answer requests until the input ends."""
    # A library's own output must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = _PeerSession(make(), Path(os.environ["PEER_FOLDER"]))
    for line in sys.stdin:
        print(json.dumps(session.answer(json.loads(line))), file=answers, flush=True)


class _PeerSession:
    def __init__(self, peer: Peer, home: Path) -> None:
        self._peer, self._home, self._folder = peer, home, home

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "open":
            return self._open(request["person"])
        if request["do"] == "add":
            return _timed(lambda: self._peer.add(request["messages"]))
        if request["do"] == "search":
            return _timed(lambda: self._peer.search(request["query"], request["top_k"]))
        return {"disk_bytes": _bytes_in(self._folder), "peak_rss_bytes": peak_memory()}

    def _open(self, person: str) -> dict[str, Any]:
        name = re.sub(r"[^A-Za-z0-9]+", "-", person).strip("-")
        self._folder = self._home / f"person-{name}"
        self._folder.mkdir(parents=True)
        return _timed(lambda: self._peer.open(self._folder))


def _timed(call: Callable[[], Any]) -> dict[str, Any]:
    started = time.perf_counter()
    result = call()
    return {"result": result, "seconds": time.perf_counter() - started}


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def peak_memory() -> int:
    """Bytes, counted from the start of the program.

    On Linux, `getrusage` starts with the parent's memory at the time of the fork, so a small
    program started by a large one would look large.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

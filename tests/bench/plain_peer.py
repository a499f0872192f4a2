"""A memory library of our own making: it finds by words shared, and chatters while it does."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path

from bench.peers.adapters import Message, Peer, serve


class PlainPeer(Peer):
    def open(self, folder: Path) -> None:
        print("opening")  # noqa: T201 - libraries do.
        self._file, self._said = folder / "said", {}

    def add(self, messages: list[Message]) -> None:
        for message in messages:
            self._said[message["key"]] = set(message["text"].lower().split())
            with self._file.open("a") as file:
                file.write(message["text"])

    def search(self, query: str, top_k: int) -> list[str]:
        if query == "environment":
            return sorted(os.environ)
        if query == "outside":
            return [_reached("https://example.org/")]
        if query == "break":
            raise RuntimeError("the shelf fell down")
        words = set(query.lower().split())
        keys = sorted(self._said, key=lambda key: -len(words & self._said[key]))
        return [*keys[:top_k], *keys[:1]]


def _reached(address: str) -> str:
    try:
        urllib.request.urlopen(address, timeout=20)  # noqa: S310 - it must not get there.
    except urllib.error.URLError as error:
        return str(error.reason)
    return "reached"


if __name__ == "__main__":
    serve(PlainPeer)

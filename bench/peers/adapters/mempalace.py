"""MemPalace as shipped: one drawer per message by its sweeper, hybrid search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mempalace import embedding
from mempalace.searcher import search_memories
from mempalace.sweeper import sweep

from bench.peers.adapters import Message, Peer, serve
from bench.peers.adapters.chroma import SameMiniLM


class MemPalace(Peer):
    def __init__(self) -> None:
        ours = SameMiniLM()
        # It has no setting for a model file; it calls this function for all embeddings.
        embedding.get_embedding_function = lambda device=None, model=None: ours

    def open(self, folder: Path) -> None:
        self._palace, self._logs = folder / "palace", folder.with_name(f"{folder.name}-logs")
        self._palace.mkdir()
        self._logs.mkdir()
        self._keys: dict[str, str] = {}

    def add(self, messages: list[Message]) -> None:
        """Write a log in the format of Claude Code, which the sweeper reads."""
        session = messages[0]["session"]
        log = self._logs / f"{len(list(self._logs.iterdir()))}.jsonl"
        with log.open("w", encoding="utf-8") as file:
            for number, message in enumerate(messages):
                self._keys[f"sweep_{session}_{number}"] = message["key"]
                file.write(json.dumps(_record(message, number)) + "\n")
        sweep(str(log), str(self._palace))

    def search(self, query: str, top_k: int) -> list[str]:
        found = search_memories(query, str(self._palace), n_results=top_k)
        return [self._keys[hit["drawer_id"]] for hit in found["results"]]


def _record(message: Message, number: int) -> dict[str, Any]:
    return {
        "type": message["role"],
        "sessionId": message["session"],
        "uuid": str(number),
        "timestamp": message["said_at"],
        "message": {"role": message["role"], "content": message["text"]},
    }


if __name__ == "__main__":
    serve(MemPalace)

"""Plain Chroma: one document per message, semantic search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings

from bench.peers.adapters import Message, Peer, serve, shared_model


class SameMiniLM(chromadb.EmbeddingFunction[list[str]]):  # type: ignore[misc]
    """Chroma's default model under its default name, from local files.

    Chroma makes one whenever it opens a collection, so the model itself is shared, as the session
    of Chroma's own function is.
    """

    def __init__(self) -> None:
        """Chroma warns about a function without a constructor."""

    def __call__(self, input: list[str]) -> list[Any]:
        return list(shared_model().embed(input))

    @staticmethod
    def name() -> str:
        return "default"

    def get_config(self) -> dict[str, Any]:
        return {}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> SameMiniLM:
        return SameMiniLM()


class Chroma(Peer):
    def __init__(self) -> None:
        self._embed = SameMiniLM()

    def open(self, folder: Path) -> None:
        client = chromadb.PersistentClient(
            path=str(folder), settings=Settings(anonymized_telemetry=False)
        )
        self._messages = client.create_collection("messages", embedding_function=self._embed)

    def add(self, messages: list[Message]) -> None:
        self._messages.add(
            ids=[message["key"] for message in messages],
            documents=[message["text"] for message in messages],
            metadatas=[
                {name: message[name] for name in ("session", "role", "speaker", "said_at")}
                for message in messages
            ],
        )

    def search(self, query: str, top_k: int) -> list[str]:
        [found] = self._messages.query(query_texts=[query], n_results=top_k)["ids"]
        return list(found)


if __name__ == "__main__":
    serve(Chroma)

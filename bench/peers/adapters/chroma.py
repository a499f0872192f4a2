"""Plain Chroma: one document a message, asked by meaning."""

from __future__ import annotations

from pathlib import Path

import chromadb
from chromadb.config import Settings

from bench.peers.adapters.for_chroma import SameMiniLM
from bench.peers.adapters.stream import Message, Peer, serve


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

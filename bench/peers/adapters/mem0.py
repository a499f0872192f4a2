"""mem0 with no language model: every message stored verbatim (`infer=False`), local Qdrant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

from bench.peers.adapters import DIMENSIONS, Message, Peer, serve, shared_model

# Never called, because nothing is inferred; mem0 requires a model's configuration.
_UNUSED_MODEL = {"provider": "openai", "config": {"api_key": "unused"}}
_PERSON = "person"


class SameMiniLM(EmbeddingBase):  # type: ignore[misc]
    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        [vector] = shared_model().embed([text])
        return [float(value) for value in vector]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        vectors: list[list[float]] = shared_model().embed(texts).tolist()
        return vectors


class Mem0(Peer):
    def __init__(self) -> None:
        _lay_out_stopwords(Path(os.environ["FASTEMBED_CACHE_PATH"]))
        self._embed = SameMiniLM()
        self._memory: Any = None

    def open(self, folder: Path) -> None:
        if self._memory is not None:
            self._memory.close()
        store = {
            "collection_name": "messages",
            "embedding_model_dims": DIMENSIONS,
            "path": str(folder / "qdrant"),
            "on_disk": True,  # Otherwise the next start deletes the data.
        }
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "llm": _UNUSED_MODEL,
                "embedder": _UNUSED_MODEL,
                "history_db_path": str(folder / "history.db"),
            }
        )
        # mem0 cannot be given an embedding function, so the model replaces its own.
        self._memory.embedding_model = self._embed

    def add(self, messages: list[Message]) -> None:
        for message in messages:
            said = {"role": message["role"], "content": message["text"]}
            if message["speaker"]:
                said["name"] = message["speaker"]
            self._memory.add(
                [said],
                user_id=_PERSON,
                run_id=message["session"],
                infer=False,
                metadata={"key": message["key"], "said_at": message["said_at"]},
            )

    def search(self, query: str, top_k: int) -> list[str]:
        found = self._memory.search(query, filters={"user_id": _PERSON}, top_k=top_k)
        return [memory["metadata"]["key"] for memory in found["results"]]


def _lay_out_stopwords(cache: Path) -> None:
    """The stop words that its keyword search would download from a hub.

    The folder is as that hub's client leaves it. Only English is asked for, so the other lists
    are empty.
    """
    revision = "local"
    home = cache / "models--Qdrant--bm25"
    files = home / "snapshots" / revision
    files.mkdir(parents=True, exist_ok=True)
    (home / "refs").mkdir(exist_ok=True)
    (home / "refs" / "main").write_text(revision)
    (files / "config.json").write_text("{}")
    for language in _LANGUAGES:
        (files / f"{language}.txt").write_text("")
    (files / "english.txt").write_text("\n".join(os.environ["PEER_STOPWORDS"].split()))


_LANGUAGES = (
    "arabic danish dutch english finnish french german greek hungarian italian norwegian"
    " portuguese romanian russian spanish swedish turkish"
).split()

if __name__ == "__main__":
    serve(Mem0)

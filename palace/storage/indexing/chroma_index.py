"""Facts' vectors in Chroma: a server, a folder or in memory. Needs the extra `chroma`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import chromadb
import httpx
import numpy as np
from chromadb.config import Settings
from chromadb.errors import ChromaError

from palace.storage.indexing.vector_index import TIMEOUT_S, OutsideIndex, Vector, address_shown


class ChromaIndex(OutsideIndex):
    """A record's id is its fact's key, its metadata the palace.

    Only one process should open a folder. All indexes in the memory of a process are the same one.
    """

    label = "Chroma"
    # The client raises ValueError where it cannot connect.
    failures = (ChromaError, httpx.HTTPError, ValueError, OSError)

    def __init__(
        self,
        folder: Path | None = None,
        *,
        url: str = "",
        api_key: str = "",
        collection: str = "facts",
    ) -> None:
        """
        Args:
            folder: Where the index is stored; default: in memory.
            url: A server's address, in place of a folder.
            api_key: Sent as a bearer token.
            collection: What the names of its collections begin with.

        Raises:
            VectorStoreAway: the server does not answer, or the folder cannot be used.
        """
        super().__init__(
            address_shown(url) or str(folder or "in memory"), collection, is_server=bool(url)
        )
        settings = Settings(anonymized_telemetry=False)
        with self._calling():
            if url:
                self._client = _http_client(url, api_key, settings)
            elif folder is None:
                self._client = chromadb.EphemeralClient(settings)
            else:
                self._client = chromadb.PersistentClient(str(folder), settings)

    def close(self) -> None:
        with self._lock:
            self._client.close()

    def _collections(self) -> list[str]:
        return [each.name for each in self._client.list_collections()]

    def _write(
        self, name: str, dimensions: int, palace: int, vectors: Mapping[int, Vector]
    ) -> None:
        collection = self._client.get_or_create_collection(
            name, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )
        collection.upsert(
            ids=_ids(vectors),
            embeddings=[vector.tolist() for vector in vectors.values()],
            metadatas=[{"palace": palace} for _ in vectors],
        )

    def _closest(
        self, name: str, palace: int, vector: Vector, among: Collection[int], limit: int
    ) -> list[tuple[int, float]]:
        found = self._opened(name).query(
            query_embeddings=[vector.tolist()],
            ids=_ids(among),
            where={"palace": palace},
            n_results=limit,
            include=["distances"],
        )
        distances = zip(found["ids"][0], found["distances"][0], strict=True)
        return [(int(key), 1 - distance) for key, distance in distances]

    def _keys(self, name: str, palace: int, among: Collection[int] | None = None) -> set[int]:
        ids = None if among is None else _ids(among)
        found = self._opened(name).get(ids=ids, where={"palace": palace}, include=[])
        return {int(key) for key in found["ids"]}

    def _vectors(self, name: str, palace: int, among: Collection[int]) -> dict[int, Vector]:
        found = self._opened(name).get(
            ids=_ids(among), where={"palace": palace}, include=["embeddings"]
        )
        pairs = zip(found["ids"], found["embeddings"], strict=True)
        return {int(key): np.asarray(vector, dtype=np.float32) for key, vector in pairs}

    def _remove(self, name: str, palace: int, facts: Collection[int]) -> None:
        self._opened(name).delete(ids=_ids(facts), where={"palace": palace})

    def _delete_other_palaces(self, name: str, palaces: Collection[int]) -> None:
        # Without any palace the condition would be empty, which is not allowed.
        self._opened(name).delete(where={"palace": {"$nin": list(palaces) or [0]}})

    def _drop(self, name: str) -> None:
        self._client.delete_collection(name)

    def _opened(self, name: str) -> Any:
        return self._client.get_collection(name, embedding_function=None)


def _http_client(url: str, api_key: str, settings: Settings) -> Any:
    """A client with a timeout, which Chroma's own has neither for connecting nor for calls."""
    parts = urlsplit(url)
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    httpx.get(f"{url.rstrip('/')}/api/v2/heartbeat", timeout=TIMEOUT_S, headers=headers)
    client: Any = chromadb.HttpClient(
        host=parts.hostname or "",
        port=parts.port or (443 if parts.scheme == "https" else 80),
        ssl=parts.scheme == "https",
        headers=headers,
        settings=settings,
    )
    client._server._session.timeout = TIMEOUT_S
    return client


def _ids(keys: Collection[int]) -> list[str]:
    return [str(key) for key in keys]

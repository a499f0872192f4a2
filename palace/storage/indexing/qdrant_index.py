"""Facts' vectors in Qdrant: a server, a folder or in memory. Needs the extra `qdrant`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException

from palace.storage.indexing.vector_index import (
    BATCH,
    TIMEOUT_S,
    OutsideIndex,
    Vector,
    address_shown,
)

IN_MEMORY = ":memory:"


class QdrantIndex(OutsideIndex):
    """A point's id is its fact's key, its payload the palace.

    Only one process can open a folder.
    """

    label = "Qdrant"
    # Local mode raises RuntimeError where another process has the folder.
    failures = (ApiException, QdrantException, RuntimeError, OSError)

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
            url: A server's address, in place of a folder; a host alone is one of http.
            collection: What the names of its collections begin with.

        Raises:
            VectorStoreAway: the folder is in use by another process.
        """
        super().__init__(
            address_shown(url) or str(folder or IN_MEMORY), collection, is_server=bool(url)
        )
        with self._calling():
            if url:
                self._client = QdrantClient(
                    url=url,
                    api_key=api_key or None,
                    timeout=TIMEOUT_S,
                    # It would ask the server, which may be away.
                    check_compatibility=False,
                )
            else:
                self._client = (
                    QdrantClient(IN_MEMORY) if folder is None else QdrantClient(path=str(folder))
                )

    def close(self) -> None:
        with self._lock:
            self._client.close()

    def _collections(self) -> list[str]:
        return [each.name for each in self._client.get_collections().collections]

    def _write(
        self, name: str, dimensions: int, palace: int, vectors: Mapping[int, Vector]
    ) -> None:
        if not self._client.collection_exists(name):
            shape = models.VectorParams(size=dimensions, distance=models.Distance.COSINE)
            self._client.create_collection(name, vectors_config=shape)
            if self._is_server:  # Local mode has no such indexes.
                self._client.create_payload_index(name, "palace", models.PayloadSchemaType.INTEGER)
        points = [
            models.PointStruct(id=key, vector=vector.tolist(), payload={"palace": palace})
            for key, vector in vectors.items()
        ]
        self._client.upsert(name, points)

    def _closest(
        self, name: str, palace: int, vector: Vector, among: Collection[int], limit: int
    ) -> list[tuple[int, float]]:
        found = self._client.query_points(
            name,
            query=vector.tolist(),
            query_filter=_only(palace, among),
            limit=limit,
            with_payload=False,
        )
        return [(int(point.id), point.score) for point in found.points]

    def _keys(self, name: str, palace: int, among: Collection[int] | None = None) -> set[int]:
        return {int(point.id) for point in self._points(name, _only(palace, among))}

    def _vectors(self, name: str, palace: int, among: Collection[int]) -> dict[int, Vector]:
        points = self._points(name, _only(palace, among), with_vectors=True)
        return {int(point.id): np.asarray(point.vector, dtype=np.float32) for point in points}

    def _points(self, name: str, chosen: models.Filter, *, with_vectors: bool = False) -> list[Any]:
        found: list[Any] = []
        offset = None
        while True:
            points, offset = self._client.scroll(
                name,
                scroll_filter=chosen,
                limit=BATCH,
                offset=offset,
                with_payload=False,
                with_vectors=with_vectors,
            )
            found += points
            if offset is None:
                return found

    def _remove(self, name: str, palace: int, facts: Collection[int]) -> None:
        self._delete_chosen(name, _only(palace, facts))

    def _delete_other_palaces(self, name: str, palaces: Collection[int]) -> None:
        kept = models.FieldCondition(key="palace", match=models.MatchAny(any=list(palaces)))
        self._delete_chosen(name, models.Filter(must_not=[kept]))

    def _delete_chosen(self, name: str, chosen: models.Filter) -> None:
        self._client.delete(name, points_selector=models.FilterSelector(filter=chosen))

    def _drop(self, name: str) -> None:
        self._client.delete_collection(name)


def _only(palace: int, facts: Collection[int] | None) -> models.Filter:
    """A filter on the palace and, if given, the facts."""
    of_palace = models.FieldCondition(key="palace", match=models.MatchValue(value=palace))
    if facts is None:
        return models.Filter(must=[of_palace])
    return models.Filter(must=[of_palace, models.HasIdCondition(has_id=list(facts))])

"""Fact vectors in Qdrant's local mode: in a folder or in memory. Needs the extra `qdrant`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self

from qdrant_client import QdrantClient, models

from palace.models import EmbeddingSpace, FactQuerySet, Palace
from palace.storage.indexing.fact_vectors import Vector

IN_MEMORY = ":memory:"


class QdrantIndex:
    """One collection per embedding space; a point's id is its fact's key, its payload the palace.

    Only one process can open a folder. Local mode is not thread-safe, so calls are serialised.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """
        Args:
            folder: Where the index is stored; default: in memory.
        """
        self._client = QdrantClient(IN_MEMORY) if folder is None else QdrantClient(path=str(folder))
        self._lock = RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder."""
        with self._lock:
            self._client.close()

    def upsert(self, palace: Palace, space: EmbeddingSpace, vectors: Mapping[int, Vector]) -> None:
        points = [
            models.PointStruct(id=key, vector=vector.tolist(), payload={"palace": palace.pk})
            for key, vector in vectors.items()
        ]
        with self._lock:
            if not self._client.collection_exists(_name(space)):
                self._client.create_collection(_name(space), vectors_config=_shape(space))
            self._client.upsert(_name(space), points)

    def search(
        self,
        palace: Palace,
        space: EmbeddingSpace,
        vector: Vector,
        among: FactQuerySet,
        *,
        limit: int,
    ) -> list[tuple[int, float]]:
        keys = among.within(palace).order_by().values_list("pk", flat=True)
        with self._lock:
            if not self._client.collection_exists(_name(space)):
                return []
            found = self._client.query_points(
                _name(space),
                query=vector.tolist(),
                query_filter=_only(palace, keys),
                limit=limit,
                with_payload=False,
            )
        return [(int(point.id), point.score) for point in found.points]

    def filter(self, palace: Palace, space: EmbeddingSpace, facts: Collection[int]) -> set[int]:
        with self._lock:
            if not facts or not self._client.collection_exists(_name(space)):
                return set()
            points, _ = self._client.scroll(
                _name(space),
                scroll_filter=_only(palace, facts),
                limit=len(facts),
                with_payload=False,
            )
        return {int(point.id) for point in points}

    def delete(self, palace: Palace, facts: Collection[int]) -> None:
        self._delete(_only(palace, facts))

    def retain(self, palace: Palace, facts: Collection[int]) -> None:
        kept = models.HasIdCondition(has_id=list(facts))
        self._delete(models.Filter(must=[_of(palace)], must_not=[kept]))

    def _delete(self, chosen: models.Filter) -> None:
        selector = models.FilterSelector(filter=chosen)
        with self._lock:
            for collection in self._client.get_collections().collections:
                self._client.delete(collection.name, points_selector=selector)


def _name(space: EmbeddingSpace) -> str:
    return f"facts-{space.pk}"


def _shape(space: EmbeddingSpace) -> models.VectorParams:
    return models.VectorParams(size=space.dimensions, distance=models.Distance.COSINE)


def _only(palace: Palace, facts: Collection[int]) -> models.Filter:
    """A filter on the palace and the facts."""
    return models.Filter(must=[_of(palace), models.HasIdCondition(has_id=list(facts))])


def _of(palace: Palace) -> models.FieldCondition:
    return models.FieldCondition(key="palace", match=models.MatchValue(value=palace.pk))

"""Facts' vectors in Milvus: a server, or Milvus Lite in a folder. Needs the extra `milvus`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from pymilvus import DataType, MilvusClient
from pymilvus.exceptions import MilvusException

from palace.storage.indexing.vector_index import (
    BATCH,
    FILE_ENDING,
    TIMEOUT_S,
    OutsideIndex,
    Vector,
    address_shown,
)

# The most results of one search that Milvus allows.
MOST_RESULTS = 16_384
FILE = f"vectors{FILE_ENDING}"
# Milvus Lite has no such timestamps, of which each page of a query warns.
logging.getLogger("pymilvus.client.iterator.query_iterator").setLevel(logging.ERROR)


class MilvusIndex(OutsideIndex):
    """A row is a fact's key, its palace and its vector.

    Only one process can open a folder.
    """

    label = "Milvus"
    failures = (MilvusException, grpc.RpcError, RuntimeError, OSError)

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
            folder: Where Milvus Lite stores the index, in place of a server.
            url: A server's address, or a file of Milvus Lite.
            api_key: A key, or `user:password`.
            collection: What the names of its collections begin with.

        Raises:
            VectorStoreAway: the server does not answer, or the folder cannot be used.
        """
        is_server = bool(url) and not url.endswith(FILE_ENDING)
        super().__init__(address_shown(url) or str(folder), collection, is_server=is_server)
        with self._calling():
            if folder is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                url = str(folder / FILE)
            self._client = MilvusClient(uri=url, token=api_key, timeout=TIMEOUT_S)

    def close(self) -> None:
        with self._lock:
            self._client.close()

    def _collections(self) -> list[str]:
        # A name in Milvus has no hyphen.
        return [
            "-".join(name.rsplit("_", 1))
            for name in self._client.list_collections(timeout=TIMEOUT_S)
        ]

    def _write(
        self, name: str, dimensions: int, palace: int, vectors: Mapping[int, Vector]
    ) -> None:
        if not self._client.has_collection(_stored(name), timeout=TIMEOUT_S):
            self._create(_stored(name), dimensions)
        rows = [
            {"fact": key, "palace": palace, "vector": vector.tolist()}
            for key, vector in vectors.items()
        ]
        self._client.upsert(_stored(name), rows, timeout=TIMEOUT_S)

    def _create(self, name: str, dimensions: int) -> None:
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("fact", DataType.INT64, is_primary=True)
        schema.add_field("palace", DataType.INT64)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
        indexes = self._client.prepare_index_params()
        indexes.add_index("vector", index_type="AUTOINDEX", metric_type="COSINE")
        # A search sees what was written before it.
        self._client.create_collection(
            name,
            schema=schema,
            index_params=indexes,
            consistency_level="Strong",
            timeout=TIMEOUT_S,
        )

    def _closest(
        self, name: str, palace: int, vector: Vector, among: Collection[int], limit: int
    ) -> list[tuple[int, float]]:
        [found] = self._client.search(
            _stored(name),
            data=[vector.tolist()],
            filter=_only(palace, among),
            limit=min(limit, MOST_RESULTS),
            timeout=TIMEOUT_S,
        )
        return [(hit["fact"], hit["distance"]) for hit in found]

    def _keys(self, name: str, palace: int, among: Collection[int] | None = None) -> set[int]:
        return {row["fact"] for row in self._rows(name, _only(palace, among), ["fact"])}

    def _vectors(self, name: str, palace: int, among: Collection[int]) -> dict[int, Vector]:
        rows = self._rows(name, _only(palace, among), ["fact", "vector"])
        return {row["fact"]: np.asarray(row["vector"], dtype=np.float32) for row in rows}

    def _rows(self, name: str, condition: str, fields: list[str]) -> list[dict[str, Any]]:
        pages = self._client.query_iterator(
            _stored(name),
            batch_size=BATCH,
            filter=condition,
            output_fields=fields,
            timeout=TIMEOUT_S,
        )
        found: list[dict[str, Any]] = []
        try:
            while page := pages.next():
                found += page
        finally:
            pages.close()
        return found

    def _remove(self, name: str, palace: int, facts: Collection[int]) -> None:
        self._delete_chosen(name, _only(palace, facts))

    def _delete_other_palaces(self, name: str, palaces: Collection[int]) -> None:
        self._delete_chosen(name, f"palace not in {list(palaces)}")

    def _delete_chosen(self, name: str, condition: str) -> None:
        self._client.delete(_stored(name), filter=condition, timeout=TIMEOUT_S)

    def _drop(self, name: str) -> None:
        self._client.drop_collection(_stored(name), timeout=TIMEOUT_S)


def _stored(name: str) -> str:
    return name.replace("-", "_")


def _only(palace: int, facts: Collection[int] | None) -> str:
    """A condition on the palace and, if given, the facts."""
    of_palace = f"palace == {palace}"
    return of_palace if facts is None else f"{of_palace} and fact in {list(facts)}"

"""Indexing: terms, passages, vectors and postings; here the stores that facts' vectors can be in.

Stores have names, and the settings name the one that this server uses.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from language.errors import BadInput
from llm.providers import is_url
from palace.storage.indexing.vector_index import (
    FILE_ENDING,
    OutsideIndex,
    PgVectorIndex,
    VectorIndex,
)

POSTGRES = "postgres"
# FAISS logs each instruction set that it tries, and the clients of servers each request.
for _name in ("faiss", "httpx"):
    logging.getLogger(_name).setLevel(logging.WARNING)
# The module that each store's client is imported as: the extra has the store's name.
CLIENTS = {
    "qdrant": "qdrant_client",
    "chroma": "chromadb",
    "faiss": "faiss",
    "milvus": "pymilvus",
}
STORES = (POSTGRES, *CLIENTS)
# What the client of each takes as its server's address.
ADDRESSES = {
    "qdrant": "http://localhost:6333, one with https://, or a host with its port",
    "chroma": "http://localhost:8000, or one with https://",
    "milvus": "http://localhost:19530, one with https://, tcp:// or unix:, or a file of Milvus "
    f"Lite, whose name ends in {FILE_ENDING}",
}
HOST = re.compile(r"\w[\w.-]*(:\d{1,5})?")
# Stores that are a library, not a server.
WITHOUT_SERVER = ("faiss",)


@dataclass(frozen=True, slots=True)
class Store:
    """Which store, and where: a folder, a server's address, or in memory if it has neither."""

    kind: str
    folder: str = ""
    url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    collection: str = "facts"

    def open(self) -> VectorIndex:
        """As `open_store`."""
        return open_store(
            self.kind,
            folder=self.folder or None,
            url=self.url,
            api_key=self.api_key,
            collection=self.collection,
        )


def open_store(
    kind: str,
    *,
    folder: str | Path | None = None,
    url: str = "",
    api_key: str = "",
    collection: str = "facts",
) -> VectorIndex:
    """Open a store of facts' vectors: in a folder, at a server, or in memory if neither is given.

    Args:
        kind: postgres, qdrant, chroma, faiss or milvus.
        collection: What the names of its collections begin with.

    Raises:
        BadInput: there is no such store, or it lacks something; says what.
        VectorStoreAway: another process has the folder, or a server of Chroma or Milvus does not
            answer. Qdrant's is first asked by a call.
    """
    _check(kind, folder, url, api_key)
    path = None if folder is None else Path(folder).expanduser().absolute()
    # Each client is an optional dependency.
    if kind == "qdrant":
        from palace.storage.indexing.qdrant_index import QdrantIndex  # noqa: PLC0415

        return QdrantIndex(path, url=url, api_key=api_key, collection=collection)
    if kind == "chroma":
        from palace.storage.indexing.chroma_index import ChromaIndex  # noqa: PLC0415

        return ChromaIndex(path, url=url, api_key=api_key, collection=collection)
    if kind == "milvus":
        from palace.storage.indexing.milvus_index import MilvusIndex  # noqa: PLC0415

        return MilvusIndex(path, url=url, api_key=api_key, collection=collection)
    if kind == "faiss":
        from palace.storage.indexing.faiss_index import FaissIndex  # noqa: PLC0415

        return FaissIndex(path, collection=collection)
    return PgVectorIndex()


def _check(kind: str, folder: str | Path | None, url: str, api_key: str) -> None:
    if kind not in STORES:
        raise BadInput(f"There is no vector store {kind!r}; use {', '.join(STORES)}.")
    if kind == POSTGRES:
        if folder or url or api_key:
            raise BadInput(
                "Vectors in Postgres are in the database of DATABASE_URL; name no other."
            )
        return
    _check_place(kind, folder, url, api_key)
    if find_spec(CLIENTS[kind]) is None:
        raise BadInput(f"{kind} is not installed; run: pip install 'locipalace[{kind}]'")


def _check_place(kind: str, folder: str | Path | None, url: str, api_key: str) -> None:
    if kind in WITHOUT_SERVER and (url or api_key):
        raise BadInput(f"{kind} is a library: name a folder, not an address or a key.")
    if folder and url:
        raise BadInput(f"Name a folder or an address for {kind}, not both.")
    if url and not _takes(kind, url):
        # Without the value in the error: it may contain a password.
        raise BadInput(f"The url of {kind} is the address of its server: {ADDRESSES[kind]}.")
    if kind == "milvus" and not (folder or url):
        raise BadInput("Milvus stores nothing in memory: name a folder or an address.")


def _takes(kind: str, url: str) -> bool:
    """Whether the client of the store can use the address."""
    scheme, separator, rest = url.partition("://")
    if kind == "milvus":
        if url.startswith("unix:"):
            return bool(url.removeprefix("unix:").strip("/"))
        is_file = not separator and url.endswith(FILE_ENDING)
        return is_file or is_url(f"http://{rest}" if scheme == "tcp" else url)
    if kind == "qdrant" and not separator:
        return HOST.fullmatch(url) is not None
    return is_url(url)


def server_store() -> Store:
    """The store that the settings name."""
    kind, where = settings.VECTOR_STORE, settings.VECTOR_STORE_URL
    folder, url = (where, "") if kind in WITHOUT_SERVER else ("", where)
    key, collection = settings.VECTOR_STORE_API_KEY, settings.VECTOR_STORE_COLLECTION
    return Store(kind, folder, url, key, collection)


def server_index() -> VectorIndex:
    """The index of the store that the settings name; opened once per process.

    Raises:
        VectorStoreAway: it does not answer.
    """
    return _opened(os.getpid(), server_store())


def check_vector_store() -> str:
    """Ask the store that the settings name; returns its kind.

    Postgres is not asked: other checks do that.

    Raises:
        VectorStoreAway: it does not answer.
    """
    index = server_index()
    if isinstance(index, OutsideIndex):
        index.check()
    return server_store().kind


@lru_cache(maxsize=1)
def _opened(_process_id: int, store: Store) -> VectorIndex:
    """A forked child must not share its parent's connections."""
    return store.open()

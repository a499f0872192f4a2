"""Fact vectors: embedded texts in the active space, searched within one palace.

Postgres decides which facts may be found; an index only ranks them. So scopes, filters and both
time axes work the same with each index, and an index that is behind, or contains rows of a rolled
back transaction, never returns a fact that does not exist.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from pgvector import HalfVector

from language.errors import VectorStoreAway
from llm import sent
from llm.embedding import embed, forget
from llm.errors import LLMError
from palace.models import EmbeddingSpace, Fact, FactQuerySet, Palace
from palace.storage.indexing.spaces import model_of
from palace.storage.indexing.vector_index import PgVectorIndex, Vector, VectorIndex
from palace.storage.indexing.vector_stores import Store, open_store, server_index

__all__ = [
    "PgVectorIndex",
    "Store",
    "Vector",
    "VectorIndex",
    "copy_vectors",
    "cosine_in_sql",
    "cosines_of",
    "delete",
    "delete_all",
    "embed_facts",
    "embed_texts",
    "fetch",
    "fill_missing",
    "forget_texts",
    "index_in_use",
    "may_be_away",
    "nearest",
    "open_store",
    "store",
    "using",
]

logger = logging.getLogger(__name__)
# The most facts of which a question gets the cosines from such a store.
MOST_RANKED = 10_000
WITHOUT_VECTORS = "Known facts were found by their words, not by meaning."

_in_use: ContextVar[VectorIndex | None] = ContextVar("vector_index", default=None)


def index_in_use() -> VectorIndex:
    """The index in use: the server's, except inside a `using` block.

    Raises:
        VectorStoreAway: the server's does not answer.
    """
    return _in_use.get() or server_index()


@contextmanager
def using(index: VectorIndex | None) -> Iterator[None]:
    """Use this index inside the block, in this thread; None: the server's."""
    token = _in_use.set(index)
    try:
        yield
    finally:
        _in_use.reset(token)


def embed_texts(palace: Palace, space: EmbeddingSpace, texts: Sequence[str]) -> list[Vector | None]:
    """One vector per text, in one call; None for each text that cannot be embedded.

    If the call fails, each text is tried separately, so that one bad text does not affect the
    others. Missing vectors are backfilled later.
    """
    if not texts:
        return []
    try:
        return list(embed(texts, model_of(space), owner_id=palace.owner_id))
    except LLMError:
        return [_embed_one(palace, space, text) for text in texts] if len(texts) > 1 else [None]


def _embed_one(palace: Palace, space: EmbeddingSpace, text: str) -> Vector | None:
    try:
        [vector] = embed([text], model_of(space), owner_id=palace.owner_id)
    except LLMError:
        return None
    return np.asarray(vector, dtype=np.float32)


def store(palace: Palace, space: EmbeddingSpace, vectors: Mapping[int, Vector]) -> None:
    """Write the vectors of facts by key, replacing existing ones.

    If the store is away, they are backfilled later.
    """
    if vectors:
        with may_be_away("Vectors of facts will be written later"):
            index_in_use().upsert(palace, space, vectors)


def delete(palace: Palace, facts: Collection[int]) -> None:
    """Delete the vectors of deleted facts.

    What a store keeps because it is away is deleted within a day.
    """
    with may_be_away("Vectors of deleted facts will be deleted within a day"):
        index_in_use().delete(palace, facts)


def delete_all(palace: Palace) -> None:
    """Delete all vectors of a palace's facts, likewise."""
    with may_be_away("Vectors of a deleted palace will be deleted within a day"):
        index_in_use().retain(palace, [])


def fetch(palace: Palace, space: EmbeddingSpace, facts: Collection[int]) -> dict[int, Vector]:
    """The vectors of facts, by key; none while the store is away."""
    with may_be_away("Facts are compared without their vectors"):
        return index_in_use().fetch(palace, space, facts)
    return {}


@contextmanager
def may_be_away(consequence: str) -> Iterator[None]:
    """A store that is away never fails what is written to Postgres."""
    try:
        yield
    except VectorStoreAway as error:
        logger.warning("%s: %s It is at %s.", consequence, error, error.where)


def fill_missing(palace: Palace, space: EmbeddingSpace, facts: Sequence[Fact]) -> int:
    """Embed the facts without a vector in this space; returns how many were written.

    Call it outside of a transaction. Failed texts are backfilled later.
    """
    with may_be_away("Vectors of facts will be written later"):
        present = index_in_use().filter(palace, space, [fact.pk for fact in facts])
        return embed_facts(palace, space, [fact for fact in facts if fact.pk not in present])
    return 0


def embed_facts(palace: Palace, space: EmbeddingSpace, facts: Sequence[Fact]) -> int:
    """Embed facts and write their vectors; returns how many could be embedded.

    Raises:
        VectorStoreAway: the store does not answer.
    """
    if not facts:
        return 0
    texts = {fact.pk: fact.text for fact in facts}
    with sent.made_of(sent.references("fact", texts)):
        vectors = embed_texts(palace, space, list(texts.values()))
    embedded = {key: one for key, one in zip(texts, vectors, strict=True) if one is not None}
    if embedded:
        index_in_use().upsert(palace, space, embedded)
    return len(embedded)


def copy_vectors(old: Fact, new: Fact) -> None:
    """Copy the vectors of a fact to another row with the same text."""
    with may_be_away("Vectors of facts will be written later"):
        index = index_in_use()
        for space in EmbeddingSpace.objects.order_by("pk"):
            found = index.fetch(old.palace, space, [old.pk])
            if found:
                index.upsert(old.palace, space, {new.pk: found[old.pk]})


def forget_texts(texts: Collection[str]) -> None:
    """Delete the cached vectors of deleted texts, for all models."""
    for space in EmbeddingSpace.objects.order_by("pk") if texts else ():
        forget(texts, model_of(space))


def nearest(
    palace: Palace, space: EmbeddingSpace, vector: Vector, facts: FactQuerySet, *, limit: int
) -> list[tuple[Fact, float]]:
    """The closest of `facts`, best first, each with its cosine.

    Raises:
        VectorStoreAway: the store does not answer.
    """
    cosines = cosines_of(palace, space, vector, facts, limit=limit)
    related = ("subject", "object_entity", "opened_by__drawer")
    found = Fact.objects.within(palace).select_related(*related).in_bulk(list(cosines))
    return [(found[key], cosine) for key, cosine in cosines.items() if key in found]


def cosines_of(
    palace: Palace, space: EmbeddingSpace, vector: Vector, facts: FactQuerySet, *, limit: int
) -> dict[int, float]:
    """The cosine of each of the closest of `facts`, by key, best first.

    Raises:
        VectorStoreAway: the store does not answer.
    """
    return dict(index_in_use().search(palace, space, vector, facts, limit=limit))


def cosine_in_sql(
    palace: Palace,
    space: EmbeddingSpace,
    vector: Vector | None,
    among: Callable[[], FactQuerySet],
) -> tuple[str, dict[str, object], str]:
    """The cosine with the vector, or 0 without one, for facts `f` and their vectors `v`; null for
    facts that have no vector.

    Args:
        among: The facts that count; only a store outside of Postgres asks.

    Returns the expression, its parameters and what was degraded, or an empty text: while the store
    is away, no fact has a vector.
    """
    try:
        index = index_in_use()
        if isinstance(index, PgVectorIndex):
            return _stored_cosine(vector)
        if vector is None:
            return "0::float8", {}, ""
        found = index.search(palace, space, vector, among(), limit=MOST_RANKED)
    except VectorStoreAway as error:
        return "NULL::float8", {}, f"{WITHOUT_VECTORS} {error}"
    cosines = json.dumps({str(key): cosine for key, cosine in found})
    return "(%(cosines)s::jsonb ->> f.id::text)::float8", {"cosines": cosines}, ""


def _stored_cosine(vector: Vector | None) -> tuple[str, dict[str, object], str]:
    if vector is None:
        return "CASE WHEN v.embedding IS NOT NULL THEN 0::float8 END", {}, ""
    text = HalfVector(vector).to_text()
    return "-1.0 * (v.embedding <#> %(vector)s::halfvec)", {"vector": text}, ""

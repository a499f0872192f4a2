"""Fact vectors: embedded texts in the active space, searched within one palace."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

import numpy as np
from django.db.models import Exists, OuterRef

from llm.embedding import embed, forget
from llm.errors import LLMError
from palace.models import EmbeddingSpace, Fact, FactVector, Palace
from palace.models.facts import FactQuerySet
from palace.storage.indexing.spaces import model_of
from palace.storage.indexing.vector_index import Vector, index_in_use

__all__ = [
    "Vector",
    "copy_vectors",
    "embed_texts",
    "fill_batch",
    "fill_missing",
    "forget_texts",
    "lacking",
    "nearest",
    "store",
]


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
    """Write the vectors of facts by key, replacing existing ones."""
    if vectors:
        index_in_use().upsert(palace, space, vectors)


def fill_missing(palace: Palace, space: EmbeddingSpace, facts: Sequence[Fact]) -> int:
    """Embed the facts without a vector in this space; returns how many were written.

    Call it outside of a transaction. Failed texts are backfilled later.
    """
    present = index_in_use().filter(palace, space, [fact.pk for fact in facts])
    lacking = {fact.pk: fact.text for fact in facts if fact.pk not in present}
    if not lacking:
        return 0
    vectors = embed_texts(palace, space, list(lacking.values()))
    embedded = {key: one for key, one in zip(lacking, vectors, strict=True) if one is not None}
    store(palace, space, embedded)
    return len(embedded)


def lacking(space: EmbeddingSpace) -> FactQuerySet:
    """Facts of any palace without a vector in this space, active or not."""
    present = FactVector.objects.filter(palace=OuterRef("palace"), space=space, fact=OuterRef("pk"))
    return Fact.objects.filter(~Exists(present))


def fill_batch(space: EmbeddingSpace, *, limit: int = 128) -> int:
    """Embed some of the missing vectors in this space; returns how many were written."""
    facts = list(lacking(space).select_related("palace").order_by("palace_id", "pk")[:limit])
    filled = 0
    for _, group in groupby(facts, key=lambda fact: fact.palace_id):
        of_palace = list(group)
        filled += fill_missing(of_palace[0].palace, space, of_palace)
    return filled


def copy_vectors(old: Fact, new: Fact) -> None:
    """Copy the vectors of a fact to another row with the same text."""
    rows = FactVector.objects.filter(palace=old.palace_id, fact=old)
    FactVector.objects.bulk_create(
        FactVector(
            palace_id=row.palace_id, space_id=row.space_id, fact=new, embedding=row.embedding
        )
        for row in rows
    )


def forget_texts(texts: Collection[str]) -> None:
    """Delete the cached vectors of deleted texts, for all models."""
    for space in EmbeddingSpace.objects.order_by("pk") if texts else ():
        forget(texts, model_of(space))


def nearest(
    palace: Palace, space: EmbeddingSpace, vector: Vector, facts: FactQuerySet, *, limit: int
) -> list[tuple[Fact, float]]:
    """The closest of `facts`, best first, each with its cosine."""
    cosines = dict(index_in_use().search(palace, space, vector, facts, limit=limit))
    found = Fact.objects.select_related("subject", "object_entity", "opened_by__drawer").in_bulk(
        list(cosines)
    )
    return [(found[key], cosine) for key, cosine in cosines.items() if key in found]

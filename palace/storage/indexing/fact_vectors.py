"""Fact vectors: embedded texts in the active space, searched within one palace.

Postgres decides which facts may be found; an index only ranks them. So scopes, filters and both
time axes work the same with each index, and an index that is behind, or contains rows of a rolled
back transaction, never returns a fact that does not exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import groupby
from typing import Protocol

import numpy as np
import numpy.typing as npt
from django.db import connection
from django.db.models import Exists, OuterRef
from pgvector import HalfVector
from pgvector.django import MaxInnerProduct

from llm import sent
from llm.embedding import embed, forget
from llm.errors import LLMError
from palace.models import EmbeddingSpace, Fact, FactQuerySet, FactVector, Palace
from palace.storage.indexing.spaces import model_of

Vector = npt.NDArray[np.float32]


class VectorIndex(Protocol):
    """Vectors of length 1 by fact key, separate by palace and by space."""

    def upsert(self, palace: Palace, space: EmbeddingSpace, vectors: Mapping[int, Vector]) -> None:
        """Write vectors, replacing existing ones."""

    def search(
        self,
        palace: Palace,
        space: EmbeddingSpace,
        vector: Vector,
        among: FactQuerySet,
        *,
        limit: int,
    ) -> list[tuple[int, float]]:
        """The closest `among` these facts of the palace: key and cosine, best first."""

    def filter(self, palace: Palace, space: EmbeddingSpace, facts: Collection[int]) -> set[int]:
        """The facts that have a vector in this space."""

    def delete(self, palace: Palace, facts: Collection[int]) -> None:
        """Delete the vectors of these facts, in every space; unknown ones are skipped."""

    def retain(self, palace: Palace, facts: Collection[int]) -> None:
        """Delete the vectors of all other facts of the palace, in every space."""


class PgVectorIndex:
    """Vectors in Postgres, written and deleted in the transaction of their facts."""

    def upsert(self, palace: Palace, space: EmbeddingSpace, vectors: Mapping[int, Vector]) -> None:
        literals = [HalfVector(vector).to_text() for vector in vectors.values()]
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO palace_factvector (palace_id, space_id, fact_id, embedding)
                SELECT %s, %s, fact, vector::halfvec
                FROM unnest(%s::bigint[], %s::text[]) AS new (fact, vector)
                ON CONFLICT (palace_id, space_id, fact_id)
                DO UPDATE SET embedding = EXCLUDED.embedding
                """,
                [palace.pk, space.pk, list(vectors), literals],
            )

    def search(
        self,
        palace: Palace,
        space: EmbeddingSpace,
        vector: Vector,
        among: FactQuerySet,
        *,
        limit: int,
    ) -> list[tuple[int, float]]:
        facts = among.within(palace).order_by().values("pk")
        rows = (
            FactVector.objects.filter(palace=palace, space=space, fact__in=facts)
            .annotate(closeness=MaxInnerProduct("embedding", HalfVector(vector)))
            .order_by("closeness", "fact_id")
            .values_list("fact_id", "closeness")[:limit]
        )
        return [(key, -closeness) for key, closeness in rows]

    def filter(self, palace: Palace, space: EmbeddingSpace, facts: Collection[int]) -> set[int]:
        rows = FactVector.objects.filter(palace=palace, space=space, fact__in=facts)
        return set(rows.values_list("fact_id", flat=True))

    def delete(self, palace: Palace, facts: Collection[int]) -> None:
        FactVector.objects.filter(palace=palace, fact__in=facts).delete()

    def retain(self, palace: Palace, facts: Collection[int]) -> None:
        FactVector.objects.filter(palace=palace).exclude(fact__in=facts).delete()


_in_use: ContextVar[VectorIndex] = ContextVar("vector_index", default=PgVectorIndex())  # noqa: B039 - it has no state.


def index_in_use() -> VectorIndex:
    """The index in use: Postgres, except inside a `using` block."""
    return _in_use.get()


@contextmanager
def using(index: VectorIndex) -> Iterator[None]:
    """Use this index inside the block, in this thread."""
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
    with sent.made_of(sent.references("fact", lacking)):
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
    cosines = cosines_of(palace, space, vector, facts, limit=limit)
    found = Fact.objects.select_related("subject", "object_entity", "opened_by__drawer").in_bulk(
        list(cosines)
    )
    return [(found[key], cosine) for key, cosine in cosines.items() if key in found]


def cosines_of(
    palace: Palace, space: EmbeddingSpace, vector: Vector, facts: FactQuerySet, *, limit: int
) -> dict[int, float]:
    """The cosine of each of the closest of `facts`, by key, best first."""
    return dict(index_in_use().search(palace, space, vector, facts, limit=limit))

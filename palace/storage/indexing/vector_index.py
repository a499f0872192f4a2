"""VectorIndex: the interface of fact vector indexes, and its Postgres implementation.

Postgres decides which facts may be found; an index only ranks them. So scopes, filters and both
time axes work the same with each index, and an index that is behind, or contains rows of a rolled
back transaction, never returns a fact that does not exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import numpy as np
import numpy.typing as npt
from django.db import connection
from pgvector import HalfVector
from pgvector.django import MaxInnerProduct

from palace.models import EmbeddingSpace, FactVector, Palace
from palace.models.facts import FactQuerySet

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

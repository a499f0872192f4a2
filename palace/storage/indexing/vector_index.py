"""The interface of the stores of facts' vectors, and Postgres, which is one of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
from django.db import connection
from pgvector import HalfVector
from pgvector.django import MaxInnerProduct

from palace.models import EmbeddingSpace, FactQuerySet, FactVector, Palace

Vector = npt.NDArray[np.float32]


class VectorIndex(Protocol):
    """Vectors of length 1 by fact key, separate by palace and by space.

    A store that does not answer raises VectorStoreAway.
    """

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

    def fetch(
        self, palace: Palace, space: EmbeddingSpace, facts: Collection[int]
    ) -> dict[int, Vector]:
        """The vectors of these facts in this space, by key."""

    def delete(self, palace: Palace, facts: Collection[int]) -> None:
        """Delete the vectors of these facts, in every space; unknown ones are skipped."""

    def retain(self, palace: Palace, facts: Collection[int]) -> None:
        """Delete the vectors of all other facts of the palace, in every space."""

    def prune(
        self, spaces: Collection[EmbeddingSpace], palaces: Collection[int] | None = None
    ) -> None:
        """Delete the vectors of all other spaces and, if given, of all other palaces."""


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

    def fetch(
        self, palace: Palace, space: EmbeddingSpace, facts: Collection[int]
    ) -> dict[int, Vector]:
        rows = FactVector.objects.filter(palace=palace, space=space, fact__in=facts)
        return {
            key: np.asarray(vector, dtype=np.float32)
            for key, vector in rows.values_list("fact_id", "embedding")
        }

    def delete(self, palace: Palace, facts: Collection[int]) -> None:
        FactVector.objects.filter(palace=palace, fact__in=facts).delete()

    def retain(self, palace: Palace, facts: Collection[int]) -> None:
        FactVector.objects.filter(palace=palace).exclude(fact__in=facts).delete()

    def prune(
        self, spaces: Collection[EmbeddingSpace], palaces: Collection[int] | None = None
    ) -> None:
        FactVector.objects.exclude(space__in=spaces).delete()
        if palaces is not None:
            FactVector.objects.exclude(palace__in=palaces).delete()

"""The interface of the stores of facts' vectors, of which Postgres is one; what the rest share."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from threading import RLock
from types import TracebackType
from typing import ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from django.db import connection
from pgvector import HalfVector
from pgvector.django import MaxInnerProduct

from language.errors import VectorStoreAway
from palace.models import EmbeddingSpace, FactQuerySet, FactVector, Palace

Vector = npt.NDArray[np.float32]
# Of a file of Milvus Lite, which is named in place of a server.
FILE_ENDING = ".db"
# A user and a password in front of a host.
_CREDENTIALS = re.compile(r"^(\w+://)?[^/]*@")


@runtime_checkable
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


def address_shown(url: str) -> str:
    """The address for display: without user name, password and query."""
    return _CREDENTIALS.sub(r"\1", url).partition("?")[0]


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


# Rows in one call: stores limit the size of a request.
BATCH = 1000
# Seconds for one call, after which a server counts as away, and for which it is then not asked.
TIMEOUT_S = 5
PAUSE_S = 5
Item = TypeVar("Item")


class OutsideIndex(ABC):
    """One collection per embedding space; each vector has its fact's key and its palace's.

    Postgres says which facts may be found, the store ranks them: a vector of a fact that is no
    more is never a result. Calls in this process's own files or memory are serialised, because
    they are not thread-safe. A subclass says how its store does each step; every step names a
    collection and a palace.
    """

    # What users call it, whether several processes can use a folder, and the errors that its client
    # raises when it does not answer.
    label: ClassVar[str]
    shares_folder: ClassVar[bool] = False
    failures: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, where: str, collection: str, *, is_server: bool = False) -> None:
        """
        Args:
            where: The address or folder, for messages; without secrets.
            collection: What the names of its collections begin with.
            is_server: It answers other processes, too.
        """
        self._where, self._collection, self._is_server = where, collection, is_server
        self._ours = re.compile(rf"{re.escape(collection)}-\d+")
        self._lock = RLock()
        self._asked_again_at = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._where!r}, collection={self._collection!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release the folder or the connection."""

    def check(self) -> None:
        """
        Raises:
            VectorStoreAway: the store does not answer.
        """
        with self._calling():
            self._collections()

    def upsert(self, palace: Palace, space: EmbeddingSpace, vectors: Mapping[int, Vector]) -> None:
        with self._calling():
            for some in batches(vectors):
                chosen = {key: vectors[key] for key in some}
                self._write(self._name(space), space.dimensions, palace.pk, chosen)

    def search(
        self,
        palace: Palace,
        space: EmbeddingSpace,
        vector: Vector,
        among: FactQuerySet,
        *,
        limit: int,
    ) -> list[tuple[int, float]]:
        keys = list(among.within(palace).order_by().values_list("pk", flat=True))
        if not keys:
            return []
        with self._calling():
            name = self._name(space)
            if name not in self._names():
                return []
            found = self._closest(name, palace.pk, vector, keys, min(limit, len(keys)))
        # Not every store keeps to the filter under all circumstances.
        wanted = set(keys)
        found = [pair for pair in found if pair[0] in wanted]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def filter(self, palace: Palace, space: EmbeddingSpace, facts: Collection[int]) -> set[int]:
        with self._calling():
            name = self._name(space)
            if not facts or name not in self._names():
                return set()
            return {key for some in batches(facts) for key in self._keys(name, palace.pk, some)}

    def fetch(
        self, palace: Palace, space: EmbeddingSpace, facts: Collection[int]
    ) -> dict[int, Vector]:
        with self._calling():
            name = self._name(space)
            if not facts or name not in self._names():
                return {}
            found: dict[int, Vector] = {}
            for some in batches(facts):
                found |= self._vectors(name, palace.pk, some)
            return found

    def delete(self, palace: Palace, facts: Collection[int]) -> None:
        with self._calling():
            for name in self._names():
                self._delete(name, palace.pk, facts)

    def retain(self, palace: Palace, facts: Collection[int]) -> None:
        with self._calling():
            for name in self._names():
                self._delete(name, palace.pk, self._keys(name, palace.pk) - set(facts))

    def prune(
        self, spaces: Collection[EmbeddingSpace], palaces: Collection[int] | None = None
    ) -> None:
        kept = {self._name(space) for space in spaces}
        with self._calling():
            for name in self._names():
                if name not in kept:
                    self._drop(name)
                elif palaces is not None:
                    self._delete_other_palaces(name, palaces)

    def _delete(self, name: str, palace: int, facts: Collection[int]) -> None:
        for some in batches(facts):
            self._remove(name, palace, some)

    def _name(self, space: EmbeddingSpace) -> str:
        return f"{self._collection}-{space.pk}"

    def _names(self) -> list[str]:
        """Our collections: others may be in the same store."""
        return [name for name in self._collections() if self._ours.fullmatch(name)]

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """
        Raises:
            VectorStoreAway: the store does not answer.
        """
        if not self._is_server:
            with self._lock, self._translated():
                yield
            return
        # Requests do not all wait for a server that hangs.
        if time.monotonic() < self._asked_again_at:
            raise VectorStoreAway(self.label, self._where, "it failed a moment ago")
        try:
            with self._translated():
                yield
        except VectorStoreAway:
            self._asked_again_at = time.monotonic() + PAUSE_S
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self.failures as error:
            # The name only: a message may quote the address with its key.
            why = type(error).__name__
            if not (self._is_server or self.shares_folder):
                why = f"{why}; only one process at a time can use its folder, {self._where}"
            raise VectorStoreAway(self.label, self._where, why) from error

    @abstractmethod
    def _collections(self) -> list[str]:
        """The names of all collections in the store."""

    @abstractmethod
    def _write(
        self, name: str, dimensions: int, palace: int, vectors: Mapping[int, Vector]
    ) -> None:
        """Write or replace vectors; create the collection if necessary."""

    @abstractmethod
    def _closest(
        self, name: str, palace: int, vector: Vector, among: Collection[int], limit: int
    ) -> list[tuple[int, float]]:
        """Keys and cosines of the closest `among` these of the palace."""

    @abstractmethod
    def _keys(self, name: str, palace: int, among: Collection[int] | None = None) -> set[int]:
        """The stored keys of the palace; only those `among` these, if given."""

    @abstractmethod
    def _vectors(self, name: str, palace: int, among: Collection[int]) -> dict[int, Vector]:
        """The stored vectors of the palace `among` these, by key."""

    @abstractmethod
    def _remove(self, name: str, palace: int, facts: Collection[int]) -> None:
        """Delete some vectors of the palace."""

    @abstractmethod
    def _delete_other_palaces(self, name: str, palaces: Collection[int]) -> None:
        """Delete the vectors of all palaces but these."""

    @abstractmethod
    def _drop(self, name: str) -> None:
        """Delete the collection."""


def batches(items: Collection[Item]) -> Iterator[list[Item]]:
    rest = iter(items)
    while some := list(islice(rest, BATCH)):
        yield some

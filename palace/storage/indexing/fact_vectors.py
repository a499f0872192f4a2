"""Fact vectors: embedded texts in the active space, searched within one palace, and backfilled.

Postgres decides which facts may be found; an index only ranks them. So scopes, filters and both
time axes work the same with each index, and an index that is behind, or contains rows of a rolled
back transaction, never returns a fact that does not exist. The backfill finds vectors that are
missing, out of date or left over, in whichever store.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import astuple
from itertools import groupby

import numpy as np
import redis
from django.core.cache import cache
from django.db.models import Exists, OuterRef
from django.utils.crypto import salted_hmac
from pgvector import HalfVector

from language.errors import VectorStoreAway
from llm import sent
from llm.embedding import embed, forget
from llm.errors import LLMError
from palace.models import EmbeddingSpace, Fact, FactQuerySet, FactVector, Palace
from palace.models.concurrency import sweep_task
from palace.storage.indexing import Store, open_store, server_index, server_store
from palace.storage.indexing.spaces import model_of
from palace.storage.indexing.vector_index import PgVectorIndex, Vector, VectorIndex

logger = logging.getLogger(__name__)

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
# The most facts of which a question gets the cosines from such a store.
MOST_RANKED = 10_000
WITHOUT_VECTORS = "Known facts were found by their words, not by meaning."

_in_use: ContextVar[VectorIndex | None] = ContextVar("vector_index", default=None)
# Facts in one question to a store outside of Postgres.
BATCH = 1000
# Rows that a long transaction may have made before others, and committed after them.
LATE_ROWS = 1000
_BOOKMARK_S = 7 * 24 * 3600


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


def first_lacking(space: EmbeddingSpace, limit: int) -> list[Fact]:
    """The first facts of any palace without a vector in this space, active or not.

    Raises:
        VectorStoreAway: it cannot be asked.
    """
    index = index_in_use()
    if not isinstance(index, PgVectorIndex):
        return _lacking_outside(index, space, limit)
    present = FactVector.objects.filter(palace=OuterRef("palace"), space=space, fact=OuterRef("pk"))
    lacking = Fact.objects.filter(~Exists(present)).select_related("palace")
    return list(lacking.order_by("palace_id", "pk")[:limit])


def _lacking_outside(index: VectorIndex, space: EmbeddingSpace, limit: int) -> list[Fact]:
    """Ask the store for each fact once: what has a vector keeps it, so a bookmark is kept of
    the last fact up to which none is lacking.
    """
    last = max(_bookmark(space) - LATE_ROWS, 0)
    found: list[Fact] = []
    facts = Fact.objects.select_related("palace").order_by("pk")
    while len(found) < limit and (some := list(facts.filter(pk__gt=last)[:BATCH])):
        by_palace = defaultdict(list)
        for fact in some:
            by_palace[fact.palace].append(fact)
        for palace, group in by_palace.items():
            present = index.filter(palace, space, [fact.pk for fact in group])
            found += [fact for fact in group if fact.pk not in present]
        last = some[-1].pk
        if not found:
            _set_bookmark(space, last)
    return sorted(found, key=lambda fact: (fact.palace_id, fact.pk))[:limit]


def _bookmark(space: EmbeddingSpace) -> int:
    with suppress(redis.RedisError):
        return int(cache.get(_bookmark_key(space), 0))
    return 0


def _set_bookmark(space: EmbeddingSpace, last: int) -> None:
    with suppress(redis.RedisError):
        cache.set(_bookmark_key(space), last, _BOOKMARK_S)


def _bookmark_key(space: EmbeddingSpace) -> str:
    store = salted_hmac("vector store", "\0".join(astuple(server_store())), algorithm="sha256")
    return f"vectors:{store.hexdigest()[:16]}:{space.pk}"


def fill_batch(space: EmbeddingSpace, *, limit: int = 128) -> int:
    """Embed some of the missing vectors in this space; returns how many were written."""
    filled = 0
    with may_be_away("Vectors of facts will be written later"):
        for _, group in groupby(first_lacking(space, limit), key=lambda fact: fact.palace_id):
            of_palace = list(group)
            filled += embed_facts(of_palace[0].palace, space, of_palace)
    return filled


def count_fact_vectors(palace: Palace, space: EmbeddingSpace) -> int:
    """The number of the palace's facts with a vector in this space; 0 while the store is away."""
    keys = Fact.objects.filter(palace=palace).values_list("pk", flat=True)
    with may_be_away("Vectors of facts cannot be counted"):
        return len(index_in_use().filter(palace, space, list(keys)))
    return 0


def rebuild_fact_vectors(palace: Palace, space: EmbeddingSpace) -> Iterator[int]:
    """Write the vectors of all facts of a palace into the index in use; yields batch sizes.

    What the store has of facts that are no more is deleted, and so is what Postgres has if another
    store is in use.

    Raises:
        VectorStoreAway: finished batches stay.
    """
    index = index_in_use()
    facts = Fact.objects.within(palace).order_by("pk")
    index.retain(palace, list(facts.values_list("pk", flat=True)))
    last = 0
    while some := list(facts.filter(pk__gt=last)[:BATCH]):
        embed_facts(palace, space, some)
        last = some[-1].pk
        yield len(some)
    if not isinstance(index, PgVectorIndex):
        FactVector.objects.filter(palace=palace).delete()


def tidy_fact_vectors() -> None:
    """Delete from the server's own store what deletions left there while it was away, and look
    for missing vectors from the first fact on. In Postgres nothing is ever left.

    Raises:
        VectorStoreAway: it is away.
    """
    index = server_index()
    if isinstance(index, PgVectorIndex):
        return
    for palace in Palace.objects.order_by("pk"):
        facts = Fact.objects.filter(palace=palace).values_list("pk", flat=True)
        index.retain(palace, list(facts))
    spaces = list(EmbeddingSpace.objects.order_by("pk"))
    index.prune(spaces, list(Palace.objects.values_list("pk", flat=True)))
    # Last: what was written meanwhile, and deleted here as unknown, is found to be missing.
    for space in spaces:
        _set_bookmark(space, 0)


def prune(space: EmbeddingSpace) -> None:
    """Delete the vectors of all other spaces."""
    with may_be_away("Vectors of the former model will be deleted within a day"):
        index_in_use().prune([space])


@sweep_task("palace.tasks.tidy_vectors", "vectors", reject_on_worker_lost=False)
def tidy_vectors() -> None:
    """Delete vectors that deletions left in a vector store while it was away."""
    try:
        tidy_fact_vectors()
    except VectorStoreAway as error:
        logger.warning("It will be tidied tomorrow: %s It is at %s.", error, error.where)

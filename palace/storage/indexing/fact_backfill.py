"""Backfill: facts' vectors that are missing, out of date or left over, in whichever store."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple
from itertools import groupby

import redis
from django.core.cache import cache
from django.db.models import Exists, OuterRef
from django.utils.crypto import salted_hmac

from language.errors import VectorStoreAway
from palace.models import EmbeddingSpace, Fact, FactVector, Palace
from palace.models.attempts import sweep_task
from palace.storage.indexing.fact_vectors import embed_facts, index_in_use, may_be_away
from palace.storage.indexing.vector_index import PgVectorIndex, VectorIndex
from palace.storage.indexing.vector_stores import server_index, server_store

logger = logging.getLogger(__name__)

# Facts in one question to a store outside of Postgres.
BATCH = 1000
# Rows that a long transaction may have made before others, and committed after them.
LATE_ROWS = 1000
_BOOKMARK_S = 7 * 24 * 3600


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

"""Rebuild: computes postings, passages and vectors that are missing or out of date.

Vectors are missing after an outage of the embedder or in the space of a new model; all of it is out
of date after a change of the analyzer or the splitting.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from itertools import groupby

from celery import shared_task
from django.db import connection, models, transaction
from django.db.models import Exists, OuterRef
from pgvector import HalfVector

from isolation import row_access
from language.analyzer import VERSION, analyze
from language.english.message_traits import read_traits
from language.english.stated_preferences import preference_strength
from language.errors import VectorStoreAway
from llm.embedding import prune
from llm.errors import EmbedderUnavailable, LLMError
from palace.models import (
    Drawer,
    EmbeddingSpace,
    Episode,
    EpisodeVector,
    Fact,
    Palace,
    Passage,
    Posting,
    in_palace,
)
from palace.models.concurrency import attempt, held_if_free, queue_may_be_away, sweep_task
from palace.storage.indexing import episode_vectors, fact_vectors, postings
from palace.storage.indexing.passages import EmbeddedPassages, embed_passages, store_passages
from palace.storage.indexing.spaces import activate, active_space, stays_active

logger = logging.getLogger(__name__)

BATCH = 128
# Batches of drawers per reembedding task, which then queues the next one.
REEMBED_BATCHES = 10
EMBED_MISSING_S, EMBED_EXPIRES_S = 45, 3600
_FILL = """
UPDATE palace_passage p SET embedding = n.embedding::halfvec
FROM unnest(%s::bigint[], %s::int[], %s::text[]) AS n (drawer_id, ordinal, embedding)
WHERE p.palace_id = %s AND p.space_id = %s AND p.drawer_id = n.drawer_id
  AND p.ordinal = n.ordinal AND p.embedding IS NULL
"""


@transaction.atomic
def rebuild_postings(palace: Palace) -> None:
    """Replace all postings of the palace. Recall reads the old ones until this commits."""
    palace.lock()  # Blocks mining, whose new postings would be counted twice.
    postings.lock_rewrites(palace)  # Blocks merging, whose output would be counted twice.
    Posting.objects.filter(palace=palace).delete()
    mined = Drawer.objects.within(palace).exclude(mined_at=None).order_by("pk")
    batch: list[Drawer] = []
    for drawer in mined.iterator(chunk_size=BATCH):
        batch.append(drawer)
        if len(batch) == BATCH:
            _append(palace, batch)
            batch = []
    _append(palace, batch)
    palace.analyzer = VERSION
    palace.save(update_fields=["analyzer"])


def _append(palace: Palace, drawers: list[Drawer]) -> None:
    terms = {drawer.pk: analyze(drawer.text) for drawer in drawers}
    postings.append(palace, terms)
    for drawer in drawers:
        drawer.terms = terms[drawer.pk].total()
        drawer.traits = int(read_traits(drawer.text))
        drawer.preference = preference_strength(drawer.text, drawer.role)
    Drawer.objects.within(palace).bulk_update(drawers, ["terms", "traits", "preference"])


def rebuild_passages(palace: Palace) -> Iterator[int]:
    """Split and embed every drawer again, in batches; yields the size of each batch.

    Ends early if another space becomes active, because its passages are all new.

    Raises:
        EmbedderUnavailable: finished batches are committed.
    """
    space, last = active_space(), 0
    while drawers := list(
        Drawer.objects.within(palace)
        .filter(pk__gt=last)
        .exclude(mined_at=None)
        .order_by("pk")[:BATCH]
    ):
        embedded = EmbeddedPassages(palace, space, drawers)
        if embedded.vectors is None:
            raise EmbedderUnavailable(embedded.note)
        keys = [drawer.pk for drawer in drawers]
        with transaction.atomic():
            palace.lock()
            if not stays_active(space):
                return
            locked = Drawer.objects.within(palace).filter(pk__in=keys).order_by("pk")
            locked = locked.select_for_update(no_key=True)
            present = set(locked.values_list("pk", flat=True))
            Passage.objects.filter(palace=palace, space=space, drawer__in=keys).delete()
            store_passages(palace, keys, embedded, only=present)
        last = keys[-1]
        yield len(drawers)


def fill_missing_vectors(*, limit: int = 256) -> int:
    """Embed texts without a vector, in any palace. Returns how many were processed.

    Safe to run concurrently and to kill at any time.

    Raises:
        EmbedderUnavailable: the embedder is still unavailable; nothing was changed.
    """
    pending = list(
        Passage.objects.filter(embedding=None, space__active=True)
        .select_related("space", "drawer", "palace")
        .order_by("palace_id", "drawer_id", "ordinal")[:limit]
    )
    for _, group in groupby(pending, key=lambda passage: passage.palace_id):
        _fill(list(group))
    filled = fact_vectors.fill_batch(active_space(), limit=limit)
    return len(pending) + filled + episode_vectors.fill_batch(active_space(), limit=limit)


def _fill(passages: list[Passage]) -> None:
    texts = [passage.drawer.text[passage.start : passage.end] for passage in passages]
    space, palace = passages[0].space, passages[0].palace
    vectors = embed_passages(texts, palace, space)
    columns = (
        [passage.drawer_id for passage in passages],
        [passage.ordinal for passage in passages],
        [HalfVector(vector).to_text() for vector in vectors],
    )
    with transaction.atomic():
        if palace.lock_if_there():
            with connection.cursor() as cursor:
                cursor.execute(_FILL, [*columns, palace.pk, space.pk])


def build_space(space: EmbeddingSpace, *, batch: int = 128) -> Iterator[int]:
    """Create the passages of every mined drawer in `space`, while recall uses the active space.

    Yields the number of drawers after each batch. May be killed and called again: it continues.
    Drawers mined in the meantime are included.

    Raises:
        EmbedderUnavailable: finished batches are committed.
        VectorStoreAway: likewise.
    """
    while palaces := list(Palace.objects.filter(pk__in=_lacking(space).values("palace"))):
        for palace in palaces:
            yield from _build_palace(palace, space, batch)
    for vectors in (fact_vectors, episode_vectors):
        while waiting := _keys(vectors.first_lacking(space, batch)):
            filled = vectors.fill_batch(space, limit=batch)
            # Concurrent runs may have filled all of them, so that this one filled none.
            if not filled and _keys(vectors.first_lacking(space, batch)) == waiting:
                raise EmbedderUnavailable(
                    "Facts and episodes could not be embedded; they will be embedded later."
                )
            yield 0


def _keys(rows: Sequence[Fact | Episode]) -> list[int]:
    return [row.pk for row in rows]


def _build_palace(palace: Palace, space: EmbeddingSpace, batch: int) -> Iterator[int]:
    """Keyset pagination, because searching each batch among all drawers is quadratic."""
    last = 0
    drawers = _lacking(space).filter(palace=palace).order_by("pk")
    while part := list(drawers.filter(pk__gt=last)[:batch]):
        _build(palace, space, part)
        last = part[-1].pk
        yield len(part)


def _build(palace: Palace, space: EmbeddingSpace, drawers: Sequence[Drawer]) -> None:
    embedded = EmbeddedPassages(palace, space, drawers)
    if embedded.vectors is None:
        raise EmbedderUnavailable(embedded.note)
    keys = [drawer.pk for drawer in drawers]
    with transaction.atomic():
        if not palace.lock_if_there():
            return
        locked = Drawer.objects.within(palace).filter(pk__in=keys).order_by("pk")
        list(locked.select_for_update(no_key=True).values_list("pk"))
        # Of two concurrent builders the second has waited: only a new statement sees the passages
        # that the first one wrote.
        lacking = set(
            _lacking(space).filter(palace=palace, pk__in=keys).values_list("pk", flat=True)
        )
        store_passages(palace, keys, embedded, only=lacking)


def switch_to_space(space: EmbeddingSpace) -> None:
    """Activate `space`, and delete the passages of all other spaces.

    Raises:
        EmbedderUnavailable: `space` is active, but the last few drawers are missing; calling it
            again continues.
    """
    activate(space)
    # Other processes may have mined into the old space until the activation.
    for _ in build_space(space):
        pass
    others = Passage.objects.exclude(space=space)
    for palace in Palace.objects.filter(pk__in=others.values("palace")).order_by("pk"):
        with transaction.atomic():
            # If another process has switched again, its passages must not be deleted.
            if palace.lock_if_there() and stays_active(space):
                others.filter(palace=palace).delete()
    with transaction.atomic():
        if stays_active(space):
            fact_vectors.prune(space)
            EpisodeVector.objects.exclude(space=space).delete()


def drawers_lacking(space: EmbeddingSpace) -> int:
    """Number of mined drawers without a passage in this space."""
    return _lacking(space).count()


def _lacking(space: EmbeddingSpace) -> models.QuerySet[Drawer]:
    present = Passage.objects.filter(palace=OuterRef("palace"), space=space, drawer=OuterRef("pk"))
    return Drawer.objects.filter(~Exists(present), mined_at__isnull=False)


@shared_task(name="palace.tasks.rebuild_old_postings", reject_on_worker_lost=False)
def rebuild_old_postings(palace_id: int) -> None:
    """Index the words of a palace again, with the current analyzer."""
    palaces = Palace.objects.with_old_postings().filter(pk=palace_id)
    with in_palace(palaces):
        # Queued by every sweep until it is done.
        if (palace := palaces.first()) is not None:
            with attempt("postings", palace_id):
                rebuild_postings(palace)


def enqueue_embedding() -> None:
    """Queue the embedding of texts that failed."""
    with queue_may_be_away():
        embed_missing.delay()


@sweep_task(
    "palace.tasks.embed_missing", "vectors", expires=EMBED_EXPIRES_S, reject_on_worker_lost=False
)
def embed_missing() -> None:
    """Embed texts without a vector after an outage, for a limited time.

    A lock ensures that it occupies at most one worker.
    """
    deadline = time.monotonic() + EMBED_MISSING_S
    try:
        with held_if_free("embed what is missing") as ours:
            while ours and fill_missing_vectors() and time.monotonic() < deadline:
                pass
    except LLMError as error:
        logger.warning("Passages could not be embedded yet: %s", error)


@shared_task(name="palace.tasks.prune_embedding_cache")
def prune_embedding_cache() -> None:
    prune()


@shared_task(
    name="palace.tasks.reembed",
    autoretry_for=(EmbedderUnavailable, VectorStoreAway),
    retry_backoff=True,
    max_retries=None,
)
@row_access.sweep("vectors")
def reembed(space_id: int) -> None:
    """Embed some batches in a new space, then queue the rest; at the end, activate the space."""
    space = EmbeddingSpace.objects.get(pk=space_id)
    for batches, _ in enumerate(build_space(space), start=1):
        if batches == REEMBED_BATCHES:
            reembed.delay(space_id)
            return
    switch_to_space(space)

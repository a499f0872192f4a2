"""Background tasks of storage: compaction, and vectors that are missing or of another model.

Each is idempotent and safe to run concurrently.
"""

from __future__ import annotations

import logging
import time

from celery import shared_task

from isolation import row_access
from language.errors import VectorStoreAway
from llm.embedding import prune
from llm.errors import EmbedderUnavailable, LLMError
from palace.models import EmbeddingSpace, Palace, in_palace
from palace.models.attempts import (
    attempt,
    enqueue_once,
    leave_queue,
    queue_may_be_away,
    sweep_task,
)
from palace.models.locks import held_if_free
from palace.storage.indexing import postings
from palace.storage.indexing.fact_backfill import tidy_fact_vectors
from palace.storage.indexing.rebuild import (
    build_space,
    fill_missing_vectors,
    rebuild_postings,
    switch_to_space,
)

logger = logging.getLogger(__name__)

# Batches of drawers per reembedding task, which then queues the next one.
REEMBED_BATCHES = 10
EMBED_MISSING_S, EMBED_EXPIRES_S = 45, 3600


def enqueue_compaction(palace: Palace, *, with_long: bool = False) -> None:
    """Queue the compaction of a palace's postings, where it is needed and not queued yet."""
    with queue_may_be_away():
        if postings.needs_compaction(palace):
            enqueue_once(compact_postings, palace.pk, with_long=with_long)


@shared_task(name="palace.tasks.compact_postings", reject_on_worker_lost=False)
def compact_postings(palace_id: int) -> None:
    leave_queue(compact_postings, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces):
        palace = palaces.first()
        if palace is not None and postings.needs_compaction(palace):
            postings.compact(palace)


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


@sweep_task("palace.tasks.tidy_vectors", "vectors", reject_on_worker_lost=False)
def tidy_vectors() -> None:
    """Delete vectors that deletions left in a vector store while it was away."""
    try:
        tidy_fact_vectors()
    except VectorStoreAway as error:
        logger.warning("It will be tidied tomorrow: %s It is at %s.", error, error.where)


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

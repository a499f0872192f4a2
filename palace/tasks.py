"""What happens in the background. Each task is safe to run twice, or beside itself."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from llm.embedding.cache import prune
from llm.errors import EmbedderUnavailable, LLMError
from palace import import_jobs
from palace.indexing import backfill, postings
from palace.mining.mine import mine_room as mine_room_now
from palace.models import Drawer, EmbeddingSpace, ImportJob, Palace, Room

logger = logging.getLogger(__name__)

# Batches of drawers that one reembedding task does before others get their turn.
REEMBED_BATCHES = 10
# Rooms and jobs that one sweep queues; the next sweep takes more.
SWEEP = 200


@shared_task
def mine_room(room_id: int) -> None:
    """Mine a room that was filed; one deleted meanwhile is skipped."""
    room = Room.objects.select_related("palace", "wing").filter(pk=room_id).first()
    if room is None:
        return
    mine_room_now(room)
    if postings.needs_compaction(room.palace):
        compact_postings.delay(room.palace_id)


@shared_task
def import_chats(job_id: int) -> None:
    """File and mine a slice of an import, then queue the next, so that others get their turn."""
    job = ImportJob.objects.select_related("palace").filter(pk=job_id).first()
    if job is None:
        return
    if not import_jobs.run_slice(job):
        import_chats.delay(job_id)
    if postings.needs_compaction(job.palace):
        compact_postings.delay(job.palace_id)


@shared_task
def compact_postings(palace_id: int) -> None:
    palace = Palace.objects.filter(pk=palace_id).first()
    if palace is not None:
        postings.compact(palace)


@shared_task
def take_up_unfinished() -> None:
    """Queue what a killed worker left: rooms with unmined drawers, imports that stand still."""
    since = timezone.now() - timedelta(seconds=settings.TAKE_UP_AFTER_S)
    unmined = Drawer.objects.unmined().filter(filed_at__lt=since).order_by("room_id")
    for room_id in unmined.values_list("room_id", flat=True).distinct()[:SWEEP]:
        mine_room.delay(room_id)
    for job_id in import_jobs.standing_still(since)[:SWEEP]:
        import_chats.delay(job_id)


@shared_task
def embed_missing() -> None:
    """Embed what an outage of the embedder left without a vector."""
    try:
        while backfill.fill_missing():
            pass
    except LLMError as error:
        logger.warning("Passages still wait for the embedder: %s", error)


@shared_task
def prune_embedding_cache() -> None:
    prune()


@shared_task(autoretry_for=(EmbedderUnavailable,), retry_backoff=True, max_retries=None)
def reembed(space_id: int) -> None:
    """Embed a while in a new model's space, then queue the rest; at the end, switch to it."""
    space = EmbeddingSpace.objects.get(pk=space_id)
    for batches, _ in enumerate(backfill.build_space(space), start=1):
        if batches == REEMBED_BATCHES:
            reembed.delay(space_id)
            return
    backfill.switch_to(space)

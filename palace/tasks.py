"""What happens in the background. Each task is safe to run twice, or beside itself.

What a sweep takes up is not put back into the queue at once when its process dies: if it is what
killed the process, for lack of memory say, it would do so again and again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any

from celery import shared_task
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, models
from django.utils import timezone
from kombu.exceptions import OperationalError

from isolation import reach
from llm.embedding.cache import prune
from llm.errors import EmbedderUnavailable, LLMError
from palace import retry_backoff
from palace.curation import account_deletion, purge, trash
from palace.errors import PalaceError
from palace.knowledge.dreaming.dream import dream
from palace.knowledge.dreaming.nightly import due, is_due
from palace.knowledge.episodes.episode_writer import write_due
from palace.knowledge.facts.fact_learning import learn_unread
from palace.models import Drawer, EmbeddingSpace, ImportJob, Palace, Room
from palace.models.locks import held_if_free
from palace.models.writes import forget_old_writes
from palace.pipeline.mine import mine_room as mine_room_now
from palace.storage.indexing import backfill, postings
from palace.transfer import import_jobs
from palace.webhooks import delivery
from palace.working import cleanup

logger = logging.getLogger(__name__)

# Batches of drawers that one reembedding task does before others get their turn.
REEMBED_BATCHES = 10
# Rooms and jobs that one sweep queues; the next sweep takes more.
SWEEP = 200
# Of periodic tasks one waits in the queue at most: the clock also ticks while no worker runs.
SWEEP_INTERVAL_S = 60
EMBED_MISSING_S = 45
LEARN_S = 45
WRITE_EPISODES_S = 45
PURGE_S = 45
WEBHOOKS_INTERVAL_S = 5
WEBHOOKS_S = 45


@contextmanager
def in_palace_of(rows: models.QuerySet[Any]) -> Iterator[None]:
    """The palace that a task's row is of is open inside the block; nothing where it is gone."""
    with reach.sweep("whose it is"):
        found = rows.values_list("palace_id", "palace__owner_id").first()
    with reach.open_rows(*found) if found else reach.nobody():
        yield


@contextmanager
def _in_palace(palaces: models.QuerySet[Palace]) -> Iterator[None]:
    with reach.sweep("whose it is"):
        found = palaces.values_list("pk", "owner_id").first()
    with reach.open_rows(*found) if found else reach.nobody():
        yield


@contextmanager
def _unless_gone(row: models.QuerySet[Any]) -> Iterator[None]:
    """What is deleted while a task is at it ends the task, and is no error."""
    try:
        yield
    except (IntegrityError, ObjectDoesNotExist):
        if row.exists():
            raise
        logger.info("A task ended early: what it worked on was deleted meanwhile.")


@shared_task(reject_on_worker_lost=False)
def mine_room(room_id: int) -> None:
    """Mine a room that was filed; one deleted meanwhile is skipped."""
    rooms = Room.objects.select_related("palace", "wing").filter(pk=room_id)
    with in_palace_of(rooms), _unless_gone(rooms):
        room = rooms.get()
        mine_room_now(room)
        enqueue_post_mining(room.palace_id)
        retry_backoff.done("room", room_id)
        if postings.needs_compaction(room.palace):
            compact_postings.delay(room.palace_id)


@shared_task(reject_on_worker_lost=False)
def import_chats(job_id: int, offset: int | None = None) -> None:
    """File and mine a slice of an import, then queue the next, so that others get their turn.

    Args:
        offset: Where the job stood when this was queued. If another task has moved it on since,
            that one has queued its own next slice, and this one would only be beside it.
    """
    jobs = ImportJob.objects.select_related("palace").filter(pk=job_id)
    with in_palace_of(jobs), _unless_gone(jobs):
        job = jobs.get()
        if offset is not None and job.spool_offset != offset:
            return
        if not import_jobs.run_slice(job):
            import_chats.delay(job_id, job.spool_offset)
        enqueue_post_mining(job.palace_id)
        retry_backoff.done("import", job_id)
        if postings.needs_compaction(job.palace):
            compact_postings.delay(job.palace_id)


def enqueue_mining(room_ids: Iterable[int]) -> None:
    """Queue rooms to be mined; while Redis does not answer, the sweep finds them in minutes."""
    try:
        for room_id in room_ids:
            mine_room.delay(room_id)
    except OperationalError as error:
        logger.warning("The queue is away, so messages are mined later: %s", error)


def enqueue_post_mining(palace_id: int) -> None:
    """Queue what follows mining, where there is anything to do: facts, and episodes."""
    if Drawer.objects.unread().filter(palace=palace_id).exists():
        learn_facts.delay(palace_id)
    if Room.objects.filter(palace=palace_id, episode_due_at__isnull=False).exists():
        write_episodes.delay(palace_id)


@shared_task(reject_on_worker_lost=False)
def learn_facts(palace_id: int) -> None:
    """Read what was mined for facts: a while, then queue the rest."""
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces), _unless_gone(palaces):
        if not learn_unread(palaces.get(), seconds=LEARN_S):
            learn_facts.delay(palace_id)
        retry_backoff.done("facts", palace_id)


@shared_task(reject_on_worker_lost=False)
def write_episodes(palace_id: int) -> None:
    """Write the episodes of what was mined, or changed: a while, then queue the rest."""
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces), _unless_gone(palaces):
        if not write_due(palaces.get(), seconds=WRITE_EPISODES_S):
            write_episodes.delay(palace_id)
        retry_backoff.done("episodes", palace_id)


@shared_task(reject_on_worker_lost=False)
def compact_postings(palace_id: int) -> None:
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces):
        palace = palaces.first()
        # Asked for by every room that is mined while it waits: the first one does it.
        if palace is not None and postings.needs_compaction(palace):
            postings.compact(palace)


@shared_task(expires=SWEEP_INTERVAL_S, reject_on_worker_lost=False)
@reach.sweep("what waits")
def take_up_unfinished() -> None:
    """Queue what a killed worker left: rooms with unmined drawers, palaces with drawers that were
    not read for facts or whose episodes are due, imports that stand still.

    And remove the copies of files whose import is no more.
    """
    since = timezone.now() - timedelta(seconds=settings.TAKE_UP_AFTER_S)
    unmined = Drawer.objects.unmined().filter(filed_at__lt=since).order_by("room_id")
    rooms = unmined.values_list("room_id", flat=True).distinct().iterator()
    for room_id in islice(filter(partial(retry_backoff.is_due, "room"), rooms), SWEEP):
        mine_room.delay(room_id)
    unread = Drawer.objects.unread().filter(mined_at__lt=since).order_by("palace_id")
    palaces = unread.values_list("palace_id", flat=True).distinct().iterator()
    for palace_id in islice(filter(partial(retry_backoff.is_due, "facts"), palaces), SWEEP):
        learn_facts.delay(palace_id)
    due = Room.objects.filter(episode_due_at__lt=since).order_by("palace_id")
    palaces = due.values_list("palace_id", flat=True).distinct().iterator()
    for palace_id in islice(filter(partial(retry_backoff.is_due, "episodes"), palaces), SWEEP):
        write_episodes.delay(palace_id)
    jobs = import_jobs.standing_still(since).iterator()
    for job_id in islice(filter(partial(retry_backoff.is_due, "import"), jobs), SWEEP):
        import_chats.delay(job_id)
    import_jobs.remove_orphans()


@shared_task(expires=SWEEP_INTERVAL_S, reject_on_worker_lost=False)
@reach.sweep("vectors")
def embed_missing() -> None:
    """Embed what an outage of the embedder left without a vector, one task for a while.

    However much there is, it never takes more than one worker from the others.
    """
    deadline = time.monotonic() + EMBED_MISSING_S
    try:
        with held_if_free("embed what is missing") as ours:
            while ours and backfill.fill_missing() and time.monotonic() < deadline:
                pass
    except LLMError as error:
        logger.warning("Passages still wait for the embedder: %s", error)


@shared_task(reject_on_worker_lost=False)
def purge_trash() -> None:
    """Delete for good what has been in the trash long enough: a while, then queue the rest."""
    with held_if_free("purge the trash") as ours:
        done = not ours or purge.purge_expired(seconds=PURGE_S)
    if not done:
        purge_trash.delay()


@shared_task(reject_on_worker_lost=False)
def empty_trash(palace_id: int, through: int) -> None:
    """Delete for good what went into the trash up to a batch: a while, then queue the rest.

    Args:
        through: That batch's key.
    """
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces):
        palace = palaces.first()
        drawers = trash.up_to(through)
        if palace is not None and not purge.Purge(palace).run(drawers, seconds=PURGE_S):
            empty_trash.delay(palace_id, through)


@shared_task(expires=SWEEP_INTERVAL_S, reject_on_worker_lost=False)
def delete_closed_accounts() -> None:
    """Delete what closed accounts held, also where that was broken off."""
    account_deletion.delete_closed_accounts()


@shared_task
def forget_answered_writes() -> None:
    """Delete what was answered to programs whose writes are not to be sent again any more."""
    with reach.sweep("answers"):
        forget_old_writes()


@shared_task
def forget_deleted_palaces() -> None:
    """Delete what working memory still holds of palaces that are no more."""
    with reach.sweep("keys of Redis"):
        cleanup.forget_deleted_palaces()


@shared_task(reject_on_worker_lost=False)
def dream_of(palace_id: int, with_model: bool = True) -> None:  # noqa: FBT001, FBT002
    """Dream over a palace, because somebody asked for it."""
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces), _unless_gone(palaces):
        try:
            dream(palaces.get(), with_model=with_model)
        except PalaceError as error:
            logger.error("A dream could not begin: %s", error)  # noqa: TRY400


@shared_task(reject_on_worker_lost=False)
def dream_at_night(palace_id: int) -> None:
    """Dream over a palace, unless it has dreamt since this was queued."""
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces):
        palace = palaces.first()
        night = is_due(palace, timezone.now()) if palace is not None else None
    if night is not None:
        dream_of(palace_id, with_model=night.with_model)


@shared_task(expires=SWEEP_INTERVAL_S)
@reach.sweep("dreams")
def dream_where_it_is_night() -> None:
    """Queue the dreams of palaces whose owners sleep, where there is anything new."""
    for night in islice(due(timezone.now()), SWEEP):
        dream_at_night.delay(night.palace.pk)


@shared_task(expires=WEBHOOKS_INTERVAL_S, reject_on_worker_lost=False)
@reach.sweep("webhooks")
def deliver_webhooks() -> None:
    """Tell webhooks what is due; however slow they are, they never take more than one worker."""
    with held_if_free("deliver webhooks") as ours:
        done = not ours or delivery.deliver_due(seconds=WEBHOOKS_S)
    if not done:
        deliver_webhooks.delay()


@shared_task
def forget_old_deliveries() -> None:
    with reach.sweep("deliveries"):
        delivery.forget_old()


@shared_task
def prune_embedding_cache() -> None:
    prune()


@shared_task(autoretry_for=(EmbedderUnavailable,), retry_backoff=True, max_retries=None)
@reach.sweep("vectors")
def reembed(space_id: int) -> None:
    """Embed a while in a new model's space, then queue the rest; at the end, switch to it."""
    space = EmbeddingSpace.objects.get(pk=space_id)
    for batches, _ in enumerate(backfill.build_space(space), start=1):
        if batches == REEMBED_BATCHES:
            reembed.delay(space_id)
            return
    backfill.switch_to(space)

"""Background tasks. Each is idempotent and safe to run concurrently.

Tasks queued by a sweep are not re-queued at once when their process dies: a task that kills its
process, for example by using too much memory, would do so again and again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from typing import Any

from celery import Task, shared_task
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, models
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis import RedisError

from isolation import row_access
from language.errors import PalaceError, VectorStoreAway
from llm.embedding import prune
from llm.errors import EmbedderUnavailable, LLMError
from palace import pipeline
from palace.curation import deletion, trash, wings
from palace.knowledge.dreaming import dream, is_due, palaces_due
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts import learn_unread
from palace.models import Drawer, EmbeddingSpace, ImportJob, Palace, Room, forget_old_writes
from palace.models.attempts import attempt, due_in, enqueue_once
from palace.models.locks import held_if_free
from palace.storage import (
    build_space,
    fill_missing_vectors,
    rebuild_postings,
    switch_to_space,
    tidy_fact_vectors,
)
from palace.storage.indexing import postings
from palace.transfer import import_jobs
from palace.webhooks import delivery
from palace.working import redis_store
from settings_app import task_queue
from settings_app.task_queue import BULK, QUEUE

logger = logging.getLogger(__name__)

# Batches of drawers per reembedding task, which then queues the next one.
REEMBED_BATCHES = 10
# Maximum number of rooms and jobs per sweep.
SWEEP = 200
# Periodic tasks expire after their interval, so that at most one is queued while no worker runs.
SWEEP_INTERVAL_S = 60
EMBED_MISSING_S, EMBED_EXPIRES_S, PURGE_S = 45, 3600, 45
WEBHOOKS_INTERVAL_S = 5
# After this time a palace's work makes way for others, and continues with the long tasks. Where new
# messages wait to be mined it makes way sooner.
SLICE_S, SHORT_SLICE_S = 10, 2


@contextmanager
def in_palace_of(
    rows: models.QuerySet[Any], palace: str = "palace_id", owner: str = "palace__owner_id"
) -> Iterator[int | None]:
    """Open the palace of a task's row inside the block, and yield its key; None if it is gone."""
    with row_access.sweep("whose it is"):
        found = rows.values_list(palace, owner).first()
    with row_access.open_rows(*found) if found else row_access.deny_all():
        yield found[0] if found else None


def _in_palace(palaces: models.QuerySet[Palace]) -> AbstractContextManager[int | None]:
    return in_palace_of(palaces, "pk", "owner_id")


@contextmanager
def _unless_gone(row: models.QuerySet[Any]) -> Iterator[None]:
    """End the task without an error if its row was deleted meanwhile."""
    try:
        yield
    except (IntegrityError, ObjectDoesNotExist):
        if row.exists():
            raise
        logger.info("A task ended early: its row was deleted meanwhile.")


@shared_task(reject_on_worker_lost=False)
def mine_room(room_id: int) -> None:
    """Mine a room; a deleted one is skipped."""
    rooms = Room.objects.select_related("palace", "wing").filter(pk=room_id)
    with in_palace_of(rooms) as palace, attempt("room", room_id), _unless_gone(rooms):
        room = rooms.get(palace=palace)
        pipeline.mine_room(room)
        enqueue_post_mining(room.palace_id)
        enqueue_compaction(room.palace)


@shared_task(reject_on_worker_lost=False)
def import_chats(job_id: int, offset: int | None = None) -> None:
    """File and mine a slice of an import, then queue the next, so that other tasks can run.

    Args:
        offset: The job's offset when this task was queued. If another task has advanced it, that
            one has queued the next slice, and this task does nothing.
    """
    jobs = ImportJob.objects.select_related("palace").filter(pk=job_id)
    with in_palace_of(jobs) as palace, attempt("import", job_id), _unless_gone(jobs):
        job = jobs.get(palace=palace)
        if offset is not None and job.spool_offset != offset:
            return
        if not import_jobs.run_slice(job):
            import_chats.delay(job_id, job.spool_offset)
        enqueue_post_mining(job.palace_id, queue=BULK)
        enqueue_compaction(job.palace, queue=BULK)


@contextmanager
def _queue_may_be_away() -> Iterator[None]:
    """Log that the queue is unavailable: the data is stored, and the sweep finds it in minutes."""
    try:
        yield
    except (OperationalError, RedisError) as error:
        logger.warning("The queue is unavailable; the periodic tasks will do the rest: %s", error)


def enqueue_mining(room_ids: Iterable[int]) -> bool:
    """Queue rooms to be mined; False if the queue is away."""
    with _queue_may_be_away():
        for room_id in room_ids:
            mine_room.delay(room_id)
        return True
    return False


def enqueue_embedding() -> None:
    """Queue the embedding of texts that failed."""
    with _queue_may_be_away():
        embed_missing.delay()


def enqueue_rest(palace_id: int, done: pipeline.AtOnce) -> None:
    """Queue unmined rooms, and what follows mining."""
    enqueue_mining(done.unmined)
    enqueue_post_mining(palace_id)


def enqueue_post_mining(palace_id: int, *, queue: str = QUEUE) -> None:
    """Queue keeping, facts and episodes where there are any; each waits once, as others' do.

    Episodes wait with the long tasks: a model may take its time over each, and new messages would
    wait for it.
    """
    with _queue_may_be_away():
        if wings.with_rules().filter(palace=palace_id).exists():
            enqueue_once(keep_by_rules, palace_id, queue)
        if Drawer.objects.unread().filter(palace=palace_id).exists():
            enqueue_once(learn_facts, palace_id, queue)
        if Room.objects.filter(palace=palace_id, episode_due_at__isnull=False).exists():
            enqueue_once(write_episodes, palace_id, BULK)


def enqueue_compaction(palace: Palace, *, queue: str = QUEUE) -> None:
    """Queue the compaction of a palace's postings, where it is needed and not queued yet."""
    with _queue_may_be_away():
        if postings.needs_compaction(palace):
            enqueue_once(compact_postings, palace.pk, queue)


@shared_task(bind=True, reject_on_worker_lost=False)
def learn_facts(self: Task[Any, Any], palace_id: int) -> None:
    """Extract facts of mined drawers for a limited time, then queue the rest."""
    # Of a task that was not queued there is no such information.
    is_short = (self.request.delivery_info or {}).get("routing_key") == QUEUE
    task_queue.release_place(learn_facts.name, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces), attempt("facts", palace_id), _unless_gone(palaces):
        if not learn_unread(palaces.get(), seconds=SHORT_SLICE_S if is_short else SLICE_S):
            enqueue_once(learn_facts, palace_id, BULK)


@shared_task(reject_on_worker_lost=False)
def write_episodes(palace_id: int) -> None:
    """Write due episodes for a limited time, then queue the rest."""
    task_queue.release_place(write_episodes.name, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces), attempt("episodes", palace_id), _unless_gone(palaces):
        if not write_due_episodes(palaces.get(), seconds=SLICE_S):
            enqueue_once(write_episodes, palace_id, BULK)


@shared_task(reject_on_worker_lost=False)
def compact_postings(palace_id: int) -> None:
    task_queue.release_place(compact_postings.name, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces):
        palace = palaces.first()
        if palace is not None and postings.needs_compaction(palace):
            postings.compact(palace)


@shared_task(reject_on_worker_lost=False)
def rebuild_old_postings(palace_id: int) -> None:
    """Index the words of a palace again, with the current analyzer."""
    palaces = Palace.objects.with_old_postings().filter(pk=palace_id)
    with _in_palace(palaces):
        # Queued by every sweep until it is done.
        if (palace := palaces.first()) is not None:
            with attempt("postings", palace_id):
                rebuild_postings(palace)


@shared_task(expires=SWEEP_INTERVAL_S, reject_on_worker_lost=False)
@row_access.sweep("what waits")
def take_up_unfinished() -> None:
    """Queue unfinished work: rooms with unmined drawers, palaces with drawers without extracted
    facts or with due episodes, palaces with old postings, stalled imports.

    It waits with the long tasks: of one palace it may be thousands of rooms. Also remove uploaded
    files whose import was deleted.
    """
    # Facts and episodes wait in either queue.
    before = min(map(task_queue.left_before, (QUEUE, BULK)))
    left = partial(task_queue.is_left, before=before)
    unmined = Drawer.objects.unmined().filter(left("filed_at")).order_by("room_id")
    _queue_due(mine_room, "room", unmined.values_list("room_id", flat=True).distinct())
    unread = Drawer.objects.unread().filter(left("mined_at")).order_by("palace_id")
    _queue_due(learn_facts, "facts", unread.values_list("palace_id", flat=True).distinct())
    due = Room.objects.filter(left("episode_due_at")).order_by("palace_id")
    _queue_due(write_episodes, "episodes", due.values_list("palace_id", flat=True).distinct())
    old = Palace.objects.with_old_postings().order_by("pk")
    _queue_due(rebuild_old_postings, "postings", old.values_list("pk", flat=True))
    _queue_due(import_chats, "import", import_jobs.standing_still())
    import_jobs.remove_orphans()


def _queue_due(task: Task[Any, Any], kind: str, keys: models.QuerySet[Any, int]) -> None:
    for key in islice(filter(due_in(BULK, kind), keys.iterator()), SWEEP):
        task.apply_async((key,), queue=BULK)


@shared_task(expires=EMBED_EXPIRES_S, reject_on_worker_lost=False)
@row_access.sweep("vectors")
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


@shared_task(reject_on_worker_lost=False)
def purge_trash() -> None:
    """Purge expired trash for a limited time, then queue the rest."""
    with held_if_free("purge the trash") as ours:
        done = not ours or deletion.purge_expired(seconds=PURGE_S)
    if not done:
        purge_trash.delay()


@shared_task(reject_on_worker_lost=False)
def keep_by_rules(palace_id: int) -> None:
    """Move to the trash what the wings of a palace do not keep."""
    task_queue.release_place(keep_by_rules.name, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces), _unless_gone(palaces):
        wings.apply_keeping(palaces.get())


@shared_task(expires=SWEEP_INTERVAL_S)
@row_access.sweep("keeping")
def keep_by_rules_everywhere() -> None:
    """Queue the palaces with such rules: messages grow old."""
    for palace_id in wings.with_rules().order_by().values_list("palace_id", flat=True).distinct():
        keep_by_rules.apply_async((palace_id,), queue=BULK)


@shared_task(reject_on_worker_lost=False)
def empty_trash(palace_id: int, through: int) -> None:
    """Purge the trash up to a batch for a limited time, then queue the rest.

    Args:
        through: Key of the last batch to purge.
    """
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces):
        palace = palaces.first()
        drawers = trash.up_to(through)
        if palace is not None and not deletion.Purge(palace).run(drawers, seconds=PURGE_S):
            empty_trash.delay(palace_id, through)


@shared_task(expires=SWEEP_INTERVAL_S, reject_on_worker_lost=False)
def delete_closed_accounts() -> None:
    """Delete the data of closed accounts, including interrupted deletions."""
    deletion.delete_closed_accounts()


@shared_task
def forget_answered_writes() -> None:
    """Delete expired responses of idempotent writes."""
    with row_access.sweep("answers"):
        forget_old_writes()


@shared_task
def forget_deleted_palaces() -> None:
    """Delete working memory of deleted palaces."""
    with row_access.sweep("keys of Redis"):
        redis_store.forget_deleted_palaces()


@shared_task(reject_on_worker_lost=False)
def dream_of(palace_id: int, with_model: bool = True) -> None:  # noqa: FBT001, FBT002
    """Dream over a palace on request."""
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces), _unless_gone(palaces):
        try:
            dream(palaces.get(), with_model=with_model)
        except PalaceError as error:
            logger.error("A dream could not begin: %s", error)  # noqa: TRY400


@shared_task(reject_on_worker_lost=False)
def dream_at_night(palace_id: int) -> None:
    """Dream over a palace at night, unless it has dreamt since this was queued."""
    palaces = Palace.objects.filter(pk=palace_id)
    with _in_palace(palaces):
        palace = palaces.first()
        night = is_due(palace, timezone.now()) if palace is not None else None
    if night is not None:
        dream_of(palace_id, with_model=night.with_model)


@shared_task(expires=SWEEP_INTERVAL_S)
@row_access.sweep("dreams")
def dream_where_it_is_night() -> None:
    """Queue the nightly dreams of palaces with new content."""
    for night in islice(palaces_due(timezone.now()), SWEEP):
        dream_at_night.delay(night.palace.pk)


@shared_task(expires=WEBHOOKS_INTERVAL_S, reject_on_worker_lost=False)
@row_access.sweep("webhooks")
def deliver_webhooks() -> None:
    """Send due webhook deliveries; slow endpoints occupy at most one worker."""
    with held_if_free("deliver webhooks") as ours:
        done = not ours or delivery.deliver_due(seconds=SLICE_S)
    if not done:
        deliver_webhooks.apply_async(queue=BULK)


@shared_task
def forget_old_deliveries() -> None:
    with row_access.sweep("deliveries"):
        delivery.forget_old()


@shared_task
def prune_embedding_cache() -> None:
    prune()


@shared_task(reject_on_worker_lost=False)
@row_access.sweep("vectors")
def tidy_vectors() -> None:
    """Delete vectors that deletions left in a vector store while it was away."""
    try:
        tidy_fact_vectors()
    except VectorStoreAway as error:
        logger.warning("It will be tidied tomorrow: %s It is at %s.", error, error.where)


@shared_task(
    autoretry_for=(EmbedderUnavailable, VectorStoreAway), retry_backoff=True, max_retries=None
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

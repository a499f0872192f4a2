"""Background tasks of the whole installation and of accounts."""

from __future__ import annotations

import logging
from functools import partial
from itertools import islice
from typing import Any

from celery import Task, shared_task
from django.db.models import QuerySet

from config.backup import BackupError
from config.backup.dump import back_up_by_the_clock
from isolation import row_access
from llm import usage
from palace.mining.tasks import learn_facts, mine_room, write_episodes
from palace.models import Drawer, Palace, Room
from palace.models.concurrency import due_in, held_if_free, sweep_task
from palace.storage import rebuild_old_postings
from palace.transfer import import_jobs
from palace.working import redis_keys
from settings_app import task_queue
from settings_app.api_keys import delete_old_audit_lines
from settings_app.sessions import SessionStore
from settings_app.task_queue import BULK, QUEUE

logger = logging.getLogger(__name__)

# A task that has waited longer in the queue is dropped; the next one makes the backup.
WAITS_S = 6 * 3600
# Maximum number of rooms and jobs per sweep.
SWEEP = 200
# A sweep expires after its interval, so that at most one is queued while no worker runs.
SWEEP_INTERVAL_S = 60


@shared_task(expires=WAITS_S, reject_on_worker_lost=False)
def back_up() -> None:
    """Write a backup, unless another worker is writing one. A kill leaves no complete file."""
    with held_if_free("back up") as ours:
        if not ours:
            return
        try:
            done = back_up_by_the_clock()
        except (BackupError, OSError) as error:
            logger.error("There is no new backup: %s", error)  # noqa: TRY400 - the sentence says it.
        else:
            logger.info("Backed up: %s, %s bytes.", done.file, done.size)


@sweep_task(
    "palace.tasks.take_up_unfinished",
    "what waits",
    expires=SWEEP_INTERVAL_S,
    reject_on_worker_lost=False,
)
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
    _queue_due(import_jobs.import_chats, "import", import_jobs.standing_still())
    import_jobs.remove_orphans()


def _queue_due(task: Task[Any, Any], kind: str, keys: QuerySet[Any, int]) -> None:
    for key in islice(filter(due_in(BULK, kind), keys.iterator()), SWEEP):
        task.apply_async((key,), queue=BULK)


@sweep_task("palace.tasks.forget_deleted_palaces", "keys of Redis")
def forget_deleted_palaces() -> None:
    """Delete working memory of deleted palaces."""
    redis_keys.forget_deleted_palaces()


@shared_task(name="settings_app.tasks.forget_ended_sessions")
def forget_ended_sessions() -> None:
    """Delete expired sessions; safe to run twice."""
    with row_access.sweep("sessions"):
        SessionStore.clear_expired()


@shared_task(name="settings_app.tasks.forget_old_audit_lines")
def forget_old_audit_lines() -> None:
    """Delete old lines of the audit log; safe to run twice."""
    with row_access.sweep("audit"):
        delete_old_audit_lines()


@shared_task(name="settings_app.tasks.forget_old_sent")
def forget_old_sent() -> None:
    """Delete old records of what was sent to models; safe to run twice."""
    with row_access.sweep("sent"):
        usage.forget_sent()

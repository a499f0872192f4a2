"""Background tasks of mining: what `pipeline` does at once, and what is queued after it.

Each is idempotent and safe to run concurrently. Other tasks lie beside what they do. All keep the
names that they are queued by: during an upgrade, old and new workers share one queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from celery import Task, shared_task

from palace.curation.wings import keep_by_rules, with_rules
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts import learn_unread
from palace.mining import pipeline
from palace.models import Drawer, Palace, Room, in_palace, in_palace_of
from palace.models.concurrency import (
    attempt,
    enqueue_once,
    is_among_short,
    leave_queue,
    queue_may_be_away,
    unless_gone,
)
from palace.storage.indexing.postings import enqueue_compaction

# After this time a palace's work makes way for others, and continues with the long tasks. Where new
# messages wait to be mined it makes way sooner.
SLICE_S, SHORT_SLICE_S = 10, 2


@shared_task(name="palace.tasks.mine_room", reject_on_worker_lost=False)
def mine_room(room_id: int) -> None:
    """Mine a room; a deleted one is skipped."""
    rooms = Room.objects.select_related("palace", "wing").filter(pk=room_id)
    with (
        in_palace_of(rooms) as palace,
        attempt("room", room_id),
        unless_gone(rooms.filter(palace=palace)),
    ):
        room = rooms.get(palace=palace)
        pipeline.mine_room(room)
        enqueue_post_mining(room.palace_id)
        enqueue_compaction(room.palace)


def enqueue_mining(room_ids: Iterable[int]) -> bool:
    """Queue rooms to be mined; False if the queue is away."""
    with queue_may_be_away():
        for room_id in room_ids:
            mine_room.delay(room_id)
        return True
    return False


def enqueue_rest(palace_id: int, done: pipeline.AtOnce) -> None:
    """Queue unmined rooms, and what follows mining."""
    enqueue_mining(done.unmined)
    enqueue_post_mining(palace_id)


def enqueue_post_mining(palace_id: int, *, with_long: bool = False) -> None:
    """Queue keeping, facts and episodes where there are any; each waits once, as others' do.

    Episodes wait with the long tasks: a model may take its time over each, and new messages would
    wait for it.
    """
    with queue_may_be_away():
        if with_rules().filter(palace=palace_id).exists():
            enqueue_once(keep_by_rules, palace_id, with_long=with_long)
        if Drawer.objects.unread().filter(palace=palace_id).exists():
            enqueue_once(learn_facts, palace_id, with_long=with_long)
        if Room.objects.filter(palace=palace_id, episode_due_at__isnull=False).exists():
            enqueue_once(write_episodes, palace_id, with_long=True)


@shared_task(bind=True, name="palace.tasks.learn_facts", reject_on_worker_lost=False)
def learn_facts(self: Task[Any, Any], palace_id: int) -> None:
    """Extract facts of mined drawers for a limited time, then queue the rest."""
    is_short = is_among_short(self)
    leave_queue(learn_facts, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces), attempt("facts", palace_id), unless_gone(palaces):
        if not learn_unread(palaces.get(), seconds=SHORT_SLICE_S if is_short else SLICE_S):
            enqueue_once(learn_facts, palace_id, with_long=True)


@shared_task(name="palace.tasks.write_episodes", reject_on_worker_lost=False)
def write_episodes(palace_id: int) -> None:
    """Write due episodes for a limited time, then queue the rest."""
    leave_queue(write_episodes, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces), attempt("episodes", palace_id), unless_gone(palaces):
        if not write_due_episodes(palaces.get(), seconds=SLICE_S):
            enqueue_once(write_episodes, palace_id, with_long=True)

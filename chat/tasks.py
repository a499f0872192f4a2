"""Background tasks of the chat. Each is safe to run twice, or concurrently."""

from __future__ import annotations

import logging
from itertools import islice

import redis
from celery import shared_task
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError
from django.utils import timezone

from chat import mining_queue
from chat.live_reply import end_if_abandoned
from chat.models import Conversation, Message
from isolation import row_access
from palace.mining.pipeline import is_at_rest
from palace.mining.tasks import enqueue_post_mining, mine_room
from palace.models import Room, in_palace_of
from palace.models.concurrency import attempt, due_in
from palace.storage.indexing.postings import enqueue_compaction
from settings_app import task_queue
from settings_app.task_queue import QUEUE

logger = logging.getLogger(__name__)

SWEEP = 200
SWEEP_INTERVAL_S = 60


@shared_task(reject_on_worker_lost=False)
def mine_conversation(conversation_id: int) -> None:
    """Mine what was said, if it is due; a conversation deleted meanwhile is skipped."""
    conversations = Conversation.objects.select_related("palace", "agent").filter(
        pk=conversation_id
    )
    with in_palace_of(conversations) as palace, attempt("conversation", conversation_id):
        try:
            conversation = conversations.get(palace=palace)
            mining_queue.remember_if_due(conversation, timezone.now())
            enqueue_post_mining(conversation.palace_id)
            enqueue_compaction(conversation.palace)
        except (IntegrityError, ObjectDoesNotExist):
            if conversations.filter(palace=palace).exists():
                raise
            logger.info("A conversation was deleted before it was mined.")


@shared_task(reject_on_worker_lost=False)
def mine_proxied(room_id: int, last: int) -> None:
    """Mine a conversation of the proxy, unless new messages have queued a later task.

    Args:
        last: The key of the last drawer when this was queued.
    """
    with in_palace_of(Room.objects.filter(pk=room_id)) as palace:
        at_rest = is_at_rest(palace, room_id, last)
    if at_rest:
        mine_room(room_id)


@shared_task(expires=SWEEP_INTERVAL_S, reject_on_worker_lost=False)
@row_access.sweep("what waits")
def take_up_conversations() -> None:
    """Queue conversations that are due, and end replies whose writer is gone."""
    left = task_queue.is_left("mine_due_at", ahead_s=settings.MINE_AFTER_S)
    due = Conversation.objects.filter(left).order_by("mine_due_at")
    keys = due.values_list("pk", flat=True).iterator()
    for key in islice(filter(due_in(QUEUE, "conversation"), keys), SWEEP):
        mining_queue.queue(key)
    writing = Message.objects.filter(status=Message.Status.WRITING)
    for reply in writing.select_related("conversation__palace")[:SWEEP]:
        try:
            end_if_abandoned(reply)
        except redis.RedisError as error:
            logger.warning("Replies cannot be looked after: Redis does not answer (%s).", error)
            return

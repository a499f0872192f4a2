"""A reply ends once: by its writer, by a stop, or by a reader that finds the writer gone."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

import redis
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from chat import live, mining_queue
from chat.models import Conversation, Message

logger = logging.getLogger(__name__)

INTERRUPTED = "The server was stopped while this was being written. Try again."


def finish(reply: Message, **values: Any) -> bool:
    """End it as its writer, unless somebody stopped it. Returns whether we did.

    A reader that took the writer for gone is overruled.
    """
    return _end(reply, Q(writer=reply.writer), {**values, "writer": None})


def stop(reply: Message) -> bool:
    """End it with what there is.

    Raises:
        redis.RedisError: Redis is away, so nobody can be asked to stop.
    """
    live.ask_to_stop(reply.uuid)
    text = live.text_so_far(reply.uuid)
    values = {"status": Message.Status.STOPPED, "text": text, "writer": None}
    return _end(reply, Q(status=Message.Status.WRITING), values)


def end_if_abandoned(reply: Message) -> bool:
    """End a reply whose writer is gone; returns whether that was so.

    Raises:
        redis.RedisError: Redis is away, so nobody can tell.
    """
    return not live.is_alive(reply.writer) and end_as_abandoned(reply)


def end_as_abandoned(reply: Message) -> bool:
    """End it with what there is. Its writer, should it be seen again, may still `finish()` it."""
    text = live.text_so_far(reply.uuid)
    values = {"status": Message.Status.FAILED, "text": text, "note": INTERRUPTED}
    return _end(reply, Q(status=Message.Status.WRITING), values)


def end_abandoned(conversation: Conversation) -> None:
    """End the conversation's reply if its writer is gone; where nobody can tell, leave it."""
    reply = writing_in(conversation)
    if reply is None:
        return
    try:
        end_if_abandoned(reply)
    except redis.RedisError as error:
        logger.warning("A reply cannot be looked after: Redis does not answer (%s).", error)


def writing_in(conversation: Conversation) -> Message | None:
    """The reply that is being written there, if one is."""
    messages = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    reply = messages.filter(status=Message.Status.WRITING).first()
    if reply is not None:
        reply.conversation = conversation
    return reply


def cancel(reply: Message) -> None:
    """Tell its writer that its words are not wanted any more."""
    try:
        live.ask_to_stop(reply.uuid)
    except redis.RedisError as error:
        logger.warning("Nobody can be asked to stop: Redis does not answer (%s).", error)


def tell(reply: Message, kind: str) -> None:
    """`live.publish()`, which nobody has to hear: nothing is lost with Redis."""
    try:
        live.publish(reply.uuid, kind)
    except redis.RedisError as error:
        logger.warning("A reply is written unseen: Redis does not answer (%s).", error)


def forget(reply: UUID) -> None:
    """`live.forget()`; where Redis is away it goes by itself within minutes."""
    try:
        live.forget(reply)
    except redis.RedisError as error:
        logger.warning("A deleted reply is kept for minutes: Redis does not answer (%s).", error)


def _end(reply: Message, ours: Q, values: dict[str, Any]) -> bool:
    """Unless somebody else has, or has deleted it; then notify every open tab."""
    now = timezone.now()
    try:
        with transaction.atomic():
            reply.conversation.lock()
            messages = Message.objects.filter(ours, palace=reply.palace_id, pk=reply.pk)
            if not messages.update(said_at=now, **values):
                return False
            mining_queue.mark_due(reply.conversation, now)
    except Conversation.DoesNotExist:
        forget(reply.uuid)
        return False
    tell(reply, live.OVER)
    return True

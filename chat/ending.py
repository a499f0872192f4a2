"""A reply ends once: by whoever is first, be it the thread that writes it, somebody who stops it,
or one who finds its writer gone."""

from __future__ import annotations

import logging
from typing import Any

import redis
from django.db import transaction
from django.utils import timezone

from chat import live, remembering
from chat.models import Conversation, Message

logger = logging.getLogger(__name__)

INTERRUPTED = "The server was stopped while this was being written. Try again."


def end(reply: Message, status: Message.Status, text: str, **values: Any) -> bool:
    """End it, unless somebody else has; then tell whoever looks. Returns whether we did."""
    now = timezone.now()
    with transaction.atomic():
        ours = Message.objects.filter(
            palace=reply.palace_id, pk=reply.pk, status=Message.Status.WRITING
        )
        if not ours.update(status=status, text=text, said_at=now, writer=None, **values):
            return False
        remembering.mark_due(reply.conversation, now)
    tell(reply, live.OVER)
    return True


def stop(reply: Message) -> bool:
    """End it with what there is.

    Raises:
        redis.RedisError: Redis is away, so nobody can be asked to stop.
    """
    live.ask_to_stop(reply.uuid)
    return end(reply, Message.Status.STOPPED, live.text_so_far(reply.uuid))


def end_if_abandoned(reply: Message) -> bool:
    """End a reply whose writer is gone; returns whether that was so.

    Raises:
        redis.RedisError: Redis is away, so nobody can tell.
    """
    if live.is_alive(reply.writer):
        return False
    text = live.text_so_far(reply.uuid)
    return end(reply, Message.Status.FAILED, text, note=INTERRUPTED)


def end_abandoned(conversation: Conversation) -> None:
    """End the conversation's reply if its writer is gone; where nobody can tell, leave it."""
    messages = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    reply = messages.filter(status=Message.Status.WRITING).first()
    if reply is None:
        return
    reply.conversation = conversation
    try:
        end_if_abandoned(reply)
    except redis.RedisError as error:
        logger.warning("A reply cannot be looked after: Redis does not answer (%s).", error)


def tell(reply: Message, kind: str, text: str = "") -> bool:
    """`live.publish()`, which nobody has to hear: the text itself is not lost with Redis."""
    try:
        return live.publish(reply.uuid, kind, text)
    except redis.RedisError as error:
        logger.warning("A reply is written unseen: Redis does not answer (%s).", error)
        return True

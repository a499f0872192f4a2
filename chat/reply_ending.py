"""A reply's row: stored while it is written, and ended once.

Half a reply outlives its process, and Redis. A thread of its own stores it, because the one that
writes waits for the model, which may fall silent for a minute. It ends by its writer, by a stop, by
a reader that finds the writer gone, or with its palace.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import redis
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from chat import live_reply, mining_queue
from chat.models import Conversation, Message
from isolation import row_access
from isolation.row_access import Access
from palace.models import Palace

logger = logging.getLogger(__name__)

INTERRUPTED = "The server was stopped while this was being written. Try again."
# Seconds between two writes to the database, and after one that failed.
SAVE_EVERY_S, SAVE_PAUSE_S = 1, 30


def finish(reply: Message, **values: Any) -> bool:
    """End the reply as its writer, unless it was stopped. Returns whether we did.

    A reader that took the writer for gone is overruled.
    """
    return _end(reply, Q(writer=reply.writer), {**values, "writer": None})


def stop(reply: Message) -> bool:
    """Stop the reply with the text so far.

    Raises:
        redis.RedisError: Redis is away, so nobody can be asked to stop.
    """
    live_reply.ask_to_stop(reply.uuid)
    text = _text_so_far(reply)
    values = {"status": Message.Status.STOPPED, "text": text, "writer": None}
    return _end(reply, Q(status=Message.Status.WRITING), values)


def end_if_abandoned(reply: Message) -> bool:
    """End the reply if its writer is gone; returns whether it is.

    Raises:
        redis.RedisError: Redis is away, so it is unknown.
    """
    return not live_reply.is_alive(reply.writer) and end_as_abandoned(reply)


def end_as_abandoned(reply: Message) -> bool:
    """End the reply with the text so far. A writer that lives after all may still `finish()`."""
    text = _text_so_far(reply)
    values = {"status": Message.Status.FAILED, "text": text, "note": INTERRUPTED}
    return _end(reply, Q(status=Message.Status.WRITING), values)


def _text_so_far(reply: Message) -> str:
    """The longer of the texts in Redis, which may have lost some, and in the database."""
    stored = Message.objects.filter(palace=reply.palace_id, pk=reply.pk)
    texts = [live_reply.text_so_far(reply.uuid), *stored.values_list("text", flat=True)]
    return max(texts, key=len)


def end_abandoned(conversation: Conversation) -> None:
    """End the conversation's reply if its writer is gone; where that is unknown, leave it."""
    reply = writing_in(conversation)
    if reply is None:
        return
    try:
        end_if_abandoned(reply)
    except redis.RedisError as error:
        logger.warning("A reply cannot be looked after: Redis does not answer (%s).", error)


def writing_in(conversation: Conversation) -> Message | None:
    """The conversation's unfinished reply, if there is one."""
    messages = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    reply = messages.filter(status=Message.Status.WRITING).first()
    if reply is not None:
        reply.conversation = conversation
    return reply


def cancel(reply: Message) -> None:
    """Ask the writer of a deleted reply to stop; an error of Redis is logged."""
    try:
        live_reply.ask_to_stop(reply.uuid)
    except redis.RedisError as error:
        logger.warning("Nobody can be asked to stop: Redis does not answer (%s).", error)


def publish(reply: Message, kind: str) -> None:
    """`live_reply.publish()`; an error of Redis is logged: the database has everything."""
    try:
        live_reply.publish(reply.uuid, kind)
    except redis.RedisError as error:
        logger.warning("A reply is written unseen: Redis does not answer (%s).", error)


def forget(reply: UUID) -> None:
    """`live_reply.forget()`; if Redis is away, the entries expire within minutes."""
    try:
        live_reply.forget(reply)
    except redis.RedisError as error:
        logger.warning("A deleted reply is kept for minutes: Redis does not answer (%s).", error)


def _end(reply: Message, ours: Q, values: dict[str, Any]) -> bool:
    """End the reply, unless it has ended or is deleted; then notify every open tab."""
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
    publish(reply, live_reply.OVER)
    return True


def forget_replies_of(palace: Palace) -> None:
    """Drop the latest replies of a palace that is being deleted from Redis."""
    lately = Q(said_at__gte=timezone.now() - timedelta(seconds=live_reply.KEPT_S))
    writing = Q(status=Message.Status.WRITING)
    replies = Message.objects.filter(lately | writing, palace=palace, role="assistant")
    transaction.on_commit(partial(_forget, list(replies.order_by())))


def _forget(replies: list[Message]) -> None:
    for reply in replies:
        forget(reply.uuid)
        if reply.is_writing:
            cancel(reply)  # Drops what the writer has published since.


@contextmanager
def saved_every_second(reply: Message, text_so_far: Callable[[], str]) -> Iterator[None]:
    """Within the block, a growing reply is stored once a second."""
    over = threading.Event()
    saver = threading.Thread(
        target=_save,
        args=[reply, text_so_far, row_access.current(), over],
        daemon=True,
        name=f"saver of reply {reply.pk}",
    )
    saver.start()
    try:
        yield
    finally:
        over.set()
        saver.join()


def _save(
    reply: Message, text_so_far: Callable[[], str], at: Access, over: threading.Event
) -> None:
    saved, pause_s = "", SAVE_EVERY_S
    with row_access.use(at):
        while not over.wait(pause_s):
            if (text := text_so_far()) == saved:
                continue
            if _is_stored(reply, text):
                saved, pause_s = text, SAVE_EVERY_S
            else:
                pause_s = SAVE_PAUSE_S


def _is_stored(reply: Message, text: str) -> bool:
    """Store it; False if the database is away."""
    being_written = Message.objects.filter(
        palace=reply.palace_id, pk=reply.pk, writer=reply.writer, status=Message.Status.WRITING
    )
    try:
        being_written.update(text=text)
    except (OperationalError, InterfaceError) as error:
        logger.warning("Half a reply is not stored: the database is away (%s).", error)
        return False
    finally:
        connection.close()
    return True

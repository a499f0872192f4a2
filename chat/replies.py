"""Saying something, and trying a reply again. The reply is a row from the start, marked as being
written; one is written at a time in a conversation."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from chat import live, writing
from chat.errors import BadText, NothingToRetry, StillWriting
from chat.models import Agent, Conversation, Message, MessageQuerySet
from palace.models import Palace
from palace.storable import is_storable, storable_label

LONGEST_TEXT = 200_000
TITLE_LENGTH = 60


@transaction.atomic
def start(palace: Palace, agent: Agent | None, text: str, *, key: uuid.UUID) -> Conversation:
    """A new conversation with its first message, whose reply is on its way.

    Args:
        key: The message's own id. The same key again gives the conversation that is there.

    Raises:
        BadText, redis.RedisError: as `say()`.
    """
    _check(text)
    palace.lock()
    sent = Message.objects.within(palace).filter(uuid=key).select_related("conversation").first()
    if sent:
        return sent.conversation
    conversation = Conversation.objects.create(
        palace=palace, agent=agent, title=_title(text), spoke_at=timezone.now()
    )
    say(conversation, text, key=key)
    return conversation


@transaction.atomic
def say(conversation: Conversation, text: str, *, key: uuid.UUID) -> Message:
    """Store what the user says and begin the reply, which is returned.

    Args:
        key: The message's own id. Sent twice, it is said once.

    Raises:
        BadText: it is blank, too long, or holds what cannot be stored.
        StillWriting: the reply before is not finished.
        redis.RedisError: nobody could see the reply being written; nothing is stored.
    """
    _check(text)
    writer = live.writer().sign_on()
    messages = _locked(conversation)
    sent = messages.filter(uuid=key).first()
    if sent:
        return messages.current().get(position=sent.position + 1)
    last = messages.current().order_by("-position").first()
    if last and last.is_writing:
        raise StillWriting
    position = last.position + 1 if last else 0
    _add(conversation, position, uuid=key, role="user", text=text)
    return _begin(conversation, position + 1, writer)


@transaction.atomic
def retry(conversation: Conversation) -> Message:
    """Begin another reply in the place of the last one, which is put aside.

    Raises:
        NothingToRetry: nobody has said anything.
        StillWriting, redis.RedisError: as `say()`.
    """
    writer = live.writer().sign_on()
    messages = _locked(conversation)
    last = messages.current().order_by("-position").first()
    if last is None:
        raise NothingToRetry
    if last.is_writing:
        raise StillWriting
    messages.filter(pk=last.pk).update(replaced_at=timezone.now())
    return _begin(conversation, last.position, writer)


def _check(text: str) -> None:
    if not text.strip():
        raise BadText("There is nothing to send; write something first.")
    if len(text) > LONGEST_TEXT:
        raise BadText(
            f"This is {len(text):,} characters long; send at most {LONGEST_TEXT:,} at once."
        )
    if not is_storable(text):
        raise BadText(
            "This holds a character that cannot be stored (NUL, or half of a pair); remove it."
        )


def _locked(conversation: Conversation) -> MessageQuerySet:
    """Its messages, with everyone waiting who would speak in it at the same time."""
    held = Conversation.objects.select_for_update(no_key=True).only("pk")
    held.get(palace=conversation.palace_id, pk=conversation.pk)
    return Message.objects.filter(palace=conversation.palace_id, conversation=conversation)


def _begin(conversation: Conversation, position: int, writer: uuid.UUID) -> Message:
    status = Message.Status.WRITING
    reply = _add(conversation, position, role="assistant", status=status, writer=writer)
    transaction.on_commit(partial(writing.begin, reply.pk))
    return reply


def _add(conversation: Conversation, position: int, **values: Any) -> Message:
    now = timezone.now()
    Conversation.objects.filter(palace=conversation.palace_id, pk=conversation.pk).update(
        spoke_at=now
    )
    return Message.objects.create(
        palace_id=conversation.palace_id,
        conversation=conversation,
        position=position,
        said_at=now,
        **values,
    )


def _title(text: str) -> str:
    """The beginning of the first line, cut between words."""
    line = storable_label(" ".join(text.strip().splitlines()[0].split()))
    return line if len(line) <= TITLE_LENGTH else line[:TITLE_LENGTH].rsplit(" ", 1)[0] + " …"

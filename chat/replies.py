"""Say something, and try a reply again. A reply is a row from the start, marked as being written;
a conversation has one at a time.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from chat import live, reply_writer
from chat.mining_queue import is_automatic
from chat.models import Agent, Conversation, Message, MessageQuerySet, title_of
from language.storable import is_storable
from palace.errors import QuotaExceeded
from palace.models import Palace
from palace.storage import check_quota, palace_quota

LONGEST_TEXT = 200_000
# Of one person: each takes a thread, and at times a connection to the database.
MOST_AT_ONCE = 8


class ChatError(Exception):
    """Something the person at the keyboard can understand and mend."""


class BadText(ChatError):
    """What was written cannot be sent."""


class NoRoom(ChatError):
    """The palace's quota is used up."""


class StillWriting(ChatError):
    def __init__(self) -> None:
        super().__init__("The reply is still being written. Wait for it, or stop it first.")


class TooManyReplies(ChatError):
    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most} replies of yours are being written already. Wait for one of them, or stop it."
        )


class NothingToRetry(ChatError):
    def __init__(self) -> None:
        super().__init__(
            "This is no longer the last reply, so it cannot be tried again. Reload the page."
        )


@transaction.atomic
def start(palace: Palace, agent: Agent | None, text: str, *, key: uuid.UUID) -> Conversation:
    """A new conversation with its first message, whose reply is on its way.

    Args:
        key: The message's own id. The same again gives the conversation that is there.

    Raises:
        BadText, NoRoom, TooManyReplies, redis.RedisError: as `say()`.
    """
    _check(text)
    palace.lock()
    used = Message.objects.within(palace).filter(uuid=key).select_related("conversation").first()
    if used:
        if used.role == "user" and used.text == text:
            return used.conversation
        key = uuid.uuid4()
    conversation = Conversation.objects.create(
        palace=palace, agent=agent, title=title_of(text), spoke_at=timezone.now()
    )
    say(conversation, text, key=key)
    return conversation


@transaction.atomic
def say(conversation: Conversation, text: str, *, key: uuid.UUID) -> Message:
    """Store what the user says and begin the reply, which is returned.

    Args:
        key: The message's own id. Sent twice, it is said once; but other words from a page
            that somebody went back to are new.

    Raises:
        BadText: it is blank, too long, or holds what cannot be stored.
        NoRoom: the palace, where it would be remembered, is full.
        StillWriting: the reply before is not finished.
        Conversation.DoesNotExist: it has been deleted meanwhile.
        TooManyReplies: enough of them are being written for the same person.
        redis.RedisError: nobody could see the reply being written; nothing is stored.
    """
    _check(text)
    writer = live.writer().sign_on()
    messages = _locked(conversation)
    used = Message.objects.filter(palace=conversation.palace_id, uuid=key).first()
    if used:
        if (used.conversation_id, used.role, used.text) == (conversation.pk, "user", text):
            return messages.current().get(position=used.position + 1)
        key = uuid.uuid4()
    last = messages.current().order_by("-position").first()
    if last and last.is_writing:
        raise StillWriting
    _check_room(conversation.palace, text)
    position = last.position + 1 if last else 0
    _add(conversation, position, uuid=key, role="user", text=text)
    return _begin(conversation, position + 1, writer)


@transaction.atomic
def retry(conversation: Conversation, seen: uuid.UUID) -> Message:
    """Begin another reply in the place of the last one, which is put aside.

    Args:
        seen: The reply that was not good enough. If it has been put aside already, the one in
            its place is returned.

    Raises:
        NothingToRetry: it is not the last one; more has been said since.
        StillWriting, TooManyReplies, Conversation.DoesNotExist, redis.RedisError: as `say()`.
    """
    writer = live.writer().sign_on()
    messages = _locked(conversation)
    last = messages.current().order_by("-position").first()
    wanted = messages.filter(uuid=seen, role="assistant").first()
    if last is None or wanted is None or wanted.position != last.position:
        raise NothingToRetry
    if wanted != last:
        return last
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
    conversation.lock()
    return Message.objects.filter(palace=conversation.palace_id, conversation=conversation)


def _begin(conversation: Conversation, position: int, writer: uuid.UUID) -> Message:
    _refuse_too_many(conversation.palace_id)
    status = Message.Status.WRITING
    reply = _add(conversation, position, role="assistant", status=status, writer=writer)
    transaction.on_commit(partial(reply_writer.begin, reply))
    return reply


def _check_room(palace: Palace, text: str) -> None:
    if not palace_quota().is_set or not is_automatic(palace.owner_id):
        return
    try:
        check_quota(palace, [text])
    except QuotaExceeded as error:
        raise NoRoom(str(error)) from None


def _refuse_too_many(palace_id: int) -> None:
    being_written = Message.objects.filter(palace=palace_id, status=Message.Status.WRITING)
    writers = list(being_written.values_list("writer", flat=True))
    if len(writers) >= MOST_AT_ONCE and sum(map(live.is_alive, writers)) >= MOST_AT_ONCE:
        raise TooManyReplies(MOST_AT_ONCE)


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

"""File and mine a conversation after a reply.

A conversation is mined when it rests for a moment, or has grown by a window. Until then it is
marked as due, in the same transaction that ended the reply: whatever is killed, the mark stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from celery import current_app
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from chat.models import Agent, Conversation, Message, title_of
from language.transcripts import Role, Transcript, Turn
from llm.deadline import within
from palace.mining.pipeline import WINDOW, mine_room
from palace.mining.tasks import enqueue_post_mining
from palace.models import Drawer, Room, Wing
from palace.storage import file_transcript, palace_quota
from settings_app.models import settings_of

SOURCE = "chat"
# Conversations that are mined before a reply, latest first; and the time limit for model calls.
MOST_OTHERS = 5
OTHERS_DEADLINE_S = 5


@dataclass(frozen=True, slots=True)
class FiledMessages:
    """How many messages were filed, and in which room, if any."""

    messages: int
    room: Room | None


def is_automatic(owner_id: int) -> bool:
    chosen = settings_of(owner_id)
    return chosen.enabled and chosen.auto_mine


def mark_due(conversation: Conversation, now: datetime) -> None:
    """Mark the conversation to be mined after a quiet moment, or at once if a window is full.

    Call it in the transaction that ends a reply; the task is queued when that commits.
    """
    if not is_automatic(conversation.palace.owner_id):
        return
    rest_s = 0 if conversation.count_unmined() >= WINDOW else settings.MINE_AFTER_S
    due = now + timedelta(seconds=rest_s)
    Conversation.objects.filter(palace=conversation.palace_id, pk=conversation.pk).update(
        mine_due_at=due
    )
    transaction.on_commit(partial(queue, conversation.pk, rest_s))


def queue(conversation_id: int, rest_s: float = 0) -> None:
    """Queue the mining; if the broker is away, the periodic task finds the mark."""
    try:
        current_app.send_task(
            "chat.tasks.mine_conversation", [conversation_id], countdown=rest_s, ignore_result=True
        )
    except OperationalError:
        return


def waiting(conversation: Conversation) -> QuerySet[Message]:
    """The messages that have not been filed yet, in order."""
    said = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    return said.current().unmined().order_by("position")


def remember_if_due(conversation: Conversation, now: datetime) -> None:
    """Mine the conversation if it is due and automatic mining is on."""
    due = conversation.mine_due_at
    # One further ahead than any is set is of a clock that was ahead.
    if due is None or now < due <= now + timedelta(seconds=settings.MINE_AFTER_S):
        return
    if not is_automatic(conversation.palace.owner_id):
        _settle(conversation, due)
        return
    remember(conversation)


def remember(conversation: Conversation) -> int:
    """File and mine the waiting messages; returns their number.

    Safe to repeat, to be killed, and to run concurrently.

    Raises:
        Conversation.DoesNotExist: it has been deleted meanwhile.
    """
    kept = keep_waiting(conversation)
    if kept.room:
        mine_room(kept.room)
        adopt_title(conversation, kept.room)
    return kept.messages


def adopt_title(conversation: Conversation, room: Room) -> None:
    """Title the conversation as its mined room, unless it was renamed.

    Until then its title is the beginning of its first message.
    """
    said = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    users = said.current().filter(role="user")
    first = users.order_by("position").values_list("text", flat=True)[:1]
    rooms = Room.objects.within(conversation.palace).exclude(wing__number=Wing.UNSORTED)
    title = rooms.filter(pk=room.pk).values_list("title", flat=True).first()
    if title is not None:
        # The condition is checked in the database, so that a concurrent renaming is kept.
        unnamed = Conversation.objects.filter(palace=conversation.palace_id, pk=conversation.pk)
        unnamed.filter(title__in=[title_of(text) for text in first]).update(title=title)


def remember_others(conversation: Conversation, *, seen_from: int) -> None:
    """Mine at once the messages that neither the context window nor recall has yet.

    That is what waits in the palace's other conversations, and in this one before the context
    window. A conversation deleted meanwhile is skipped; what a killed process leaves is mined
    by the periodic task.

    Args:
        seen_from: The first message in the context window.
    """
    palace = conversation.palace
    if not is_automatic(palace.owner_id):
        return
    hidden = Message.objects.within(palace).current().unmined()
    hidden = hidden.exclude(conversation=conversation, position__gte=seen_from)
    due = Conversation.objects.within(palace).filter(pk__in=hidden.values("conversation"))
    latest = list(due.select_related("palace", "agent").order_by("-spoke_at", "-pk")[:MOST_OTHERS])
    with within(OTHERS_DEADLINE_S):
        for each in latest:
            with suppress(IntegrityError, ObjectDoesNotExist):
                remember(each)
    if latest:
        enqueue_post_mining(palace.pk)


@transaction.atomic
def keep_waiting(conversation: Conversation) -> FiledMessages:
    """File the waiting messages, each once; any worker may mine them.

    Raises:
        Conversation.DoesNotExist: as `remember()`.
        QuotaExceeded: it does not fit in the palace, and was not checked when it was said.
    """
    # Deleting the conversation takes this lock too, so no drawer is filed after it.
    conversation.palace.lock()
    conversation.refresh_from_db()
    messages = list(waiting(conversation))
    _settle(conversation, conversation.mine_due_at)
    # A message whose place was checked, and its reply, are kept in any case.
    accepted = not palace_quota().is_set or is_automatic(conversation.palace.owner_id)
    return _keep(conversation, messages, beyond_quota=accepted)


@transaction.atomic
def keep_message(message: Message) -> FiledMessages:
    """File one message now, regardless of the settings.

    Raises:
        Conversation.DoesNotExist: it has been deleted.
        QuotaExceeded: it does not fit in the palace.
    """
    conversation = message.conversation
    conversation.palace.lock()
    conversation.refresh_from_db()
    said = Message.objects.filter(palace=conversation.palace_id, pk=message.pk).exclude(text="")
    # Replies that only quote the palace, and replaced versions, are not filed.
    said = said.current().filter(status__in=Message.SAID, mined_at=None, mine=True)
    found = list(said)
    said.update(off_record=False)
    return _keep(conversation, found, beyond_quota=False)


def _keep(
    conversation: Conversation, messages: Sequence[Message], *, beyond_quota: bool
) -> FiledMessages:
    """File messages in a transaction that has locked the palace."""
    if not messages:
        return FiledMessages(0, None)
    transcript = _transcript(conversation, _in_order(conversation, messages))
    room = file_transcript(conversation.palace, transcript, beyond_quota=beyond_quota).room
    done = Message.objects.filter(
        palace=conversation.palace_id, pk__in=[message.pk for message in messages]
    )
    done.update(mined_at=timezone.now())
    return FiledMessages(len(messages), room)


def _in_order(conversation: Conversation, new: Sequence[Message]) -> list[Message]:
    """The messages, together with later ones that are filed already, which give the places.

    What was purged is left out, so that it does not come back.
    """
    said = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    filed = said.current().exclude(mined_at=None)
    if not filed.filter(position__gt=min(message.position for message in new)).exists():
        return list(new)
    drawers = Drawer.objects.filter(
        palace=conversation.palace_id, source=SOURCE, conversation=str(conversation.uuid)
    )
    kept = set(drawers.values_list("external_id", flat=True))
    before = [message for message in filed if str(message.uuid) in kept]
    return sorted([*new, *before], key=lambda message: message.position)


def _settle(conversation: Conversation, due: datetime | None) -> None:
    """Clear the mark, unless there are new messages."""
    same = Conversation.objects.filter(
        palace=conversation.palace_id, pk=conversation.pk, mine_due_at=due
    )
    same.update(mine_due_at=None)


def _transcript(conversation: Conversation, messages: list[Message]) -> Transcript:
    """A transcript of the new messages only: purged ones must not come back."""
    agent = conversation.agent
    name = agent.name if agent and agent.name != Agent.FIRST_NAME else ""
    return Transcript(
        source=SOURCE,
        external_id=str(conversation.uuid),
        title=_title(conversation, messages),
        agent=name,
        turns=tuple(_turn(message, name) for message in messages),
    )


def _title(conversation: Conversation, messages: Sequence[Message]) -> str:
    """The conversation's title; if that quotes words off the record, the first message's."""
    said = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    off_record = said.filter(off_record=True, role="user").order_by("position")
    if any(
        title_of(text) == conversation.title for text in off_record.values_list("text", flat=True)
    ):
        return title_of(messages[0].text)
    return conversation.title


def _turn(message: Message, agent: str) -> Turn:
    role: Role = "assistant" if message.role == "assistant" else "user"
    speaker = agent if role == "assistant" else ""
    if message.file_name:
        # The user sent it but need not have written it: no facts are learnt from a file's words.
        return Turn(
            str(message.uuid),
            "system",
            message.text,
            message.said_at,
            metadata={"file": message.file_name},
        )
    return Turn(str(message.uuid), role, message.text, message.said_at, speaker)

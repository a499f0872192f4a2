"""File proxied messages into drawers: each once, although every request has the whole conversation.

`conversation_matching` finds the conversation, and the messages that are filed already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import Max
from kombu.exceptions import OperationalError as QueueAway

from api.openai.chat_request import History, Said
from api.openai.conversation_matching import (
    SOURCE,
    FiledMessage,
    align,
    filed_messages,
    find_conversation,
    was_purged,
)
from chat.models import title_of
from language.storable import storable_id
from language.transcripts import Transcript, Turn
from palace.mining.pipeline import WINDOW
from palace.models import Drawer, Palace, Room
from palace.storage import file_transcript


@dataclass(frozen=True, slots=True)
class Place:
    """A request's place in its conversation.

    Attributes:
        turn: The position of its last message; `since` that of its first.
        messages: Its filed messages, in order.
        room: The conversation's room, if anything of it is filed.
    """

    conversation: str
    turn: int
    since: int = 0
    messages: tuple[FiledMessage, ...] = ()
    room: Room | None = None


def find_place(palace: Palace, history: History, named: str | None, now: datetime) -> Place:
    """Find its place without filing anything."""
    conversation = storable_id(named) if named else find_conversation(palace, history, now)
    aligned = align(history, filed_messages(palace, conversation), now)
    return _place(conversation, history, [each for each in aligned if each])


@transaction.atomic
def file_messages(palace: Palace, history: History, named: str | None, now: datetime) -> Place:
    """File the new messages verbatim.

    Raises:
        QuotaExceeded: they do not fit in the palace.
    """
    palace.lock()
    conversation = storable_id(named) if named else find_conversation(palace, history, now)
    filed = filed_messages(palace, conversation)
    aligned = align(history, filed, now)
    turns = _turns(palace, conversation, history, aligned, filed, now)
    if not turns:
        return _place(conversation, history, [])
    room = file_transcript(palace, _transcript(conversation, history, turns)).room
    ids = {turn.external_id for turn in turns}
    now_filed = [each for each in filed_messages(palace, conversation) if each.id in ids]
    return _place(conversation, history, now_filed, room)


@transaction.atomic
def keep_reply(
    palace: Palace,
    place: Place,
    history: History,
    reply: Said,
    now: datetime,
    metadata: Mapping[str, Any],
) -> None:
    """File the reply after the message it answers, and queue mining for when the room is idle."""
    palace.lock()
    filed = filed_messages(palace, place.conversation)
    messages, replies = _still_filed(place, filed)
    known = [_turn(each.id, each.said, each.said_at) for each in (*messages, *replies)]
    if reply.words not in [each.said.words for each in replies]:
        new = _free_id(reply, {each.id for each in filed})
        known.append(_turn(new, reply, now, metadata))
    transcript = _transcript(place.conversation, history, known)
    room = file_transcript(palace, transcript, beyond_quota=True).room
    mine_when_at_rest(room)


def _still_filed(
    place: Place, filed: Sequence[FiledMessage]
) -> tuple[list[FiledMessage], list[FiledMessage]]:
    """The request's filed messages, and replies to them that are filed already, by a retry or by
    the program's next request."""
    ids = {each.id for each in place.messages}
    messages = [each for each in filed if each.id in ids]
    after = filed[filed.index(messages[-1]) + 1 :] if messages else ()
    return messages, list(takewhile(lambda each: each.said.role == "assistant", after))


def mine_when_at_rest(room: Room | None) -> None:
    """Queue mining when this transaction commits, without delay if a full window is waiting.

    If the queue is unavailable, the periodic task mines it later.
    """
    if room is None:
        return
    unmined = Drawer.objects.unmined().filter(palace=room.palace_id, room=room)
    waiting, last = unmined.count(), unmined.aggregate(Max("pk"))["pk__max"]
    if last is None:
        return
    rest_s = 0 if waiting >= WINDOW else settings.MINE_AFTER_S
    transaction.on_commit(partial(_queue, room.pk, last, rest_s))


def _turns(
    palace: Palace,
    conversation: str,
    history: History,
    aligned: Sequence[FiledMessage | None],
    filed: Sequence[FiledMessage],
    now: datetime,
) -> list[Turn]:
    """The request's messages as turns, with filed messages' ids; without purged ones."""
    begins = _first_to_keep(palace, conversation, history, aligned)
    ids = {each.id for each in filed}
    turns = []
    # A moment apart, so that by time they are in order as well.
    moments = (now - timedelta(microseconds=left) for left in range(len(aligned), 0, -1))
    for place, (said, known, moment) in enumerate(zip(history.said, aligned, moments, strict=True)):
        if known:
            turns.append(_turn(known.id, known.said, known.said_at))
        elif place >= begins:
            name = _free_id(said, ids)
            ids.add(name)
            turns.append(_turn(name, said, moment))
    return turns


def _first_to_keep(
    palace: Palace, conversation: str, history: History, aligned: Sequence[FiledMessage | None]
) -> int:
    """Index of the first message to file. If part of the conversation was purged, a missing message
    may be a purged one: then only those after the last known one are new."""
    if not was_purged(palace, conversation):
        return 0
    known = [place for place, each in enumerate(aligned) if each]
    return max([history.answered, *(place + 1 for place in known)])


def _free_id(said: Said, taken: set[str]) -> str:
    number, free = 1, said.id
    while free in taken:
        number += 1
        free = f"{said.id}-{number}"
    return free


def _turn(
    name: str, said: Said, moment: datetime, metadata: Mapping[str, Any] | None = None
) -> Turn:
    return Turn(name, said.role, said.text, moment, said.speaker, metadata)


def _transcript(conversation: str, history: History, turns: Sequence[Turn]) -> Transcript:
    first = next((each.text for each in history.said if each.role == "user"), "")
    return Transcript(SOURCE, conversation, title_of(first), tuple(turns))


def _place(
    conversation: str, history: History, messages: Sequence[FiledMessage], room: Room | None = None
) -> Place:
    if not messages:
        return Place(conversation, max(len(history.said) - 1, 0), room=room)
    positions = [each.position for each in messages]
    return Place(conversation, max(positions), min(positions), tuple(messages), room)


def _queue(room_id: int, last: int, rest_s: float) -> None:
    try:
        current_app.send_task(
            "chat.tasks.mine_proxied", [room_id, last], countdown=rest_s, ignore_result=True
        )
    except QueueAway:
        return

"""Chats of people that go on for years: each day (UTC) becomes a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from language.transcripts import Role, Transcript
from palace.transfer.importers.conversation import Conversation, Gatherer, as_id, label


@dataclass(frozen=True, slots=True)
class Message:
    """
    Attributes:
        skipped: Why it is not kept; empty if it is.
        left_out: The kinds of its parts without words.
        role: By whom: people have "user".
    """

    external_id: str
    said_at: datetime
    speaker: str
    text: str
    metadata: Mapping[str, Any] | None = None
    skipped: str = ""
    left_out: tuple[str, ...] = ()
    role: Role = "user"


def days_of_chat(
    source: str, chat: str, title: str, messages: Iterable[Message]
) -> Iterator[Conversation]:
    """Yield each day when it is over, so that only one is in memory."""
    for day, of_day in groupby(messages, lambda message: message.said_at.date().isoformat()):
        gatherer = Gatherer()
        for message in of_day:
            _add(gatherer, message)
        name = label(f"{title}, {day}" if title else day)
        transcript = Transcript(source, as_id(f"{chat}/{day}"), name, gatherer.take_turns())
        yield gatherer.conversation(transcript)


def _add(gatherer: Gatherer, message: Message) -> None:
    for what in message.left_out:
        gatherer.leave_out(what)
    if message.skipped:
        gatherer.skip(message.skipped)
    else:
        gatherer.add(
            *(message.external_id, message.role, message.text),
            *(message.said_at, message.speaker, message.metadata),
        )

# Generated from palace/sdk/results.py by `make fix`: change it there.
"""What the SDK returns: plain dictionaries, ready for JSON. Times are ISO 8601, in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, Self, TypedDict

EventName = Literal["ADD", "UPDATE", "DELETE", "NONE"]


class MemoryItem(TypedDict):
    """One memory.

    Keys:
        memory: The whole statement, in the third person.
        hash: MD5 of `memory`, in hexadecimal.
        metadata: The caller's own.
        score: (1 + cosine of the texts' vectors) / 2, from 0 to 1; of search only.
        created_at: When the memory was first made; `updated_at`: when it came to say this.
        user_id, agent_id, run_id: None where it belongs to none.
        valid_from, valid_to: Since and until when it is true; None: not known, or no end.
    """

    id: str
    memory: str
    hash: str
    metadata: dict[str, Any]
    score: NotRequired[float]
    created_at: str
    updated_at: str
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    type: str
    subject: str
    predicate: str
    object: str
    aspect: str
    stance: str
    category: str
    tags: list[str]
    confidence: float
    valid_from: str | None
    valid_to: str | None


class UpdatedItem(MemoryItem):
    """A memory after its sentence was changed.

    Keys:
        changed: What followed the sentence, by the keys of an item: `object`, `predicate` … and
            `sources` where it rests on other words than before.
        note: What could not follow, in a sentence; None where everything did.
    """

    changed: list[str]
    note: str | None


class KeptWords(TypedDict):
    """A message that stays although a memory that rested on it was deleted.

    Keys:
        drawer, pointer: Which message.
        session_id: The conversation it belongs to.
        why: `other_memory`: another memory rests on it, too; `other_source`: it was not given to
            the fact API, but came by a chat, a turn or an import.
        memories: The ids of those other memories.
    """

    drawer: str
    pointer: str
    session_id: str
    why: Literal["other_memory", "other_source"]
    memories: list[str]


class Deleted(int):
    """How many memories were deleted: a number, which also says which of their words stay.

    Attributes:
        kept: The messages that stay, up to 100 of them, oldest first. All others that the fact
            API was given are in the trash.
        kept_total: How many messages stay.
    """

    kept: list[KeptWords]
    kept_total: int

    def __new__(
        cls, count: int, kept: Sequence[KeptWords] = (), kept_total: int | None = None
    ) -> Self:
        deleted = super().__new__(cls, count)
        deleted.kept = list(kept)
        deleted.kept_total = len(deleted.kept) if kept_total is None else kept_total
        return deleted


class MemoryEvent(TypedDict):
    """What became of one statement; the texts are None where there is none of the kind."""

    event: EventName
    id: str
    old_memory: str | None
    new_memory: str | None
    metadata: dict[str, Any]


class HistoryRecord(TypedDict):
    """One line of a memory's history; `id` is the line's own."""

    id: str
    memory_id: str
    event: str
    old_value: str | None
    new_value: str | None
    timestamp: str
    is_deleted: bool
    why: str
    by: str


class EntryItem(TypedDict):
    """One entry of working memory.

    Keys:
        key: Its full path.
        expires_at: Unless it is used before.
        score: BM25, from 0; of search only.
    """

    key: str
    value: str
    stored_at: str
    expires_at: str
    category: str
    tags: list[str]
    score: NotRequired[float]


class EpisodeItem(TypedDict):
    """The summary of one conversation.

    Keys:
        made_by: `local` rules, a `model`, or a `caller` who stored it.
        started_at, ended_at: Of the conversation; None where that is not known.
        score: As of memories; of search only.
    """

    id: str
    conversation_id: str
    user_id: str | None
    agent_id: str | None
    summary: str
    key_decisions: list[Any]
    entities: list[Any]
    tools: list[Any]
    made_by: str
    started_at: str | None
    ended_at: str | None
    created_at: str
    updated_at: str
    score: NotRequired[float]


class MemoryResults(TypedDict):
    results: list[MemoryItem]


class AddResults(TypedDict):
    results: list[MemoryEvent]

# Generated from palace/sdk/results.py by `make fix`: change it there.
"""Result types: plain dictionaries, ready for JSON. Times are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, Self, TypedDict

EventName = Literal["ADD", "UPDATE", "DELETE", "NONE"]


class MemoryItem(TypedDict):
    """One memory.

    Keys:
        memory: The full statement, in the third person.
        hash: MD5 of `memory`, in hexadecimal.
        metadata: As given to `add`.
        score: (1 + `similarity`) / 2, from 0 to 1; of search only.
        similarity: The cosine of the texts' vectors; of search only.
        created_at: When the memory was created; `updated_at`: when it got this text.
        user_id, agent_id, run_id: None if it belongs to none.
        valid_from, valid_to: When it is true; None: unknown, or no end.
    """

    id: str
    memory: str
    hash: str
    metadata: dict[str, Any]
    score: NotRequired[float]
    similarity: NotRequired[float]
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
    """A memory after its text was changed.

    Keys:
        changed: The keys of an item that were updated: `object`, `predicate` … and `sources` if
            its source messages changed.
        note: What could not be updated, in a sentence; None if everything was.
    """

    changed: list[str]
    note: str | None


class KeptWords(TypedDict):
    """A message that stays after a memory that used it was deleted.

    Keys:
        drawer, pointer: The message's id and address.
        session_id: Its conversation.
        why: `other_memory`: another memory uses it too; `other_source`: it was not sent to the
            fact API, but came from a chat, a turn or an import.
        memories: The ids of those other memories.
    """

    drawer: str
    pointer: str
    session_id: str
    why: Literal["other_memory", "other_source"]
    memories: list[str]


class Deleted(int):
    """The number of deleted memories, with the source messages that stay.

    Attributes:
        kept: The messages that stay, up to 100, oldest first. Other messages sent to the fact API
            are in the trash.
        kept_total: The number of messages that stay.
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
    """The outcome for one statement; texts that do not apply are None."""

    event: EventName
    id: str
    old_memory: str | None
    new_memory: str | None
    metadata: dict[str, Any]


class HistoryRecord(TypedDict):
    """One record of a memory's history; `id` is the record's."""

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
        key: The full path.
        expires_at: Each use extends it.
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
        started_at, ended_at: The conversation's start and end; None if unknown.
        score: As of memories; of search only.
        similarity: The cosine with the query; of search only.
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
    similarity: NotRequired[float]


class MemoryResults(TypedDict):
    results: list[MemoryItem]


class AddResults(TypedDict):
    """What `add` has done.

    Keys:
        extraction: `degraded`, only if a model failed or gave an unusable answer: the local rules
            then did its part.
        notes: What was degraded, in sentences; only with `extraction`.
    """

    results: list[MemoryEvent]
    extraction: NotRequired[Literal["degraded"]]
    notes: NotRequired[list[str]]

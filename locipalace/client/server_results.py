"""Result types that only a server returns: plain dictionaries; times are ISO 8601 in UTC."""

from __future__ import annotations

from typing import Any, TypedDict


class EntityItem(TypedDict):
    """An entity that memories are about."""

    id: str
    name: str
    type: str
    aliases: list[str]
    created_at: str


class EntityResults(TypedDict):
    results: list[EntityItem]


class RelationItem(TypedDict):
    """A relation of two entities; `id` is that of the memory that states it."""

    id: str
    hops: int
    source: str
    relation: str
    target: str
    memory: str
    confidence: float
    valid_from: str | None
    valid_to: str | None


class RelationResults(TypedDict):
    entity: EntityItem
    results: list[RelationItem]


class StoryLine(TypedDict):
    """One version of a memory about an entity.

    Keys:
        recorded_at, retired_at: When it was recorded and became inactive; None if active.
        drawers: Ids of its source messages.
    """

    id: str
    memory: str
    type: str
    subject: str
    predicate: str
    object: str
    valid_from: str | None
    valid_to: str | None
    recorded_at: str
    retired_at: str | None
    drawers: list[str]


class TimelineResults(TypedDict):
    entity: EntityItem
    results: list[StoryLine]


class TurnKept(TypedDict):
    """Stored messages.

    Keys:
        id: The turn's id, as in citations.
        drawers: Ids of its messages, in order.
        extraction: `complete`, or `degraded`: all is searchable; facts may come later.
    """

    id: str
    session_id: str
    drawers: list[str]
    extraction: str
    notes: list[str]


class Citation(TypedDict):
    """The source of a line of a context.

    Keys:
        turn_id: None if the source was deleted.
        score: Comparable within one response only.
        memory: The fact's id, if the line is a fact.
    """

    turn_id: str | None
    score: float
    snippet: str
    pointer: str | None
    drawer: str | None
    memory: str | None


class Recalled(TypedDict):
    """A context for a model; empty if nothing fits."""

    context: str
    citations: list[Citation]
    tokens: int
    recollection: str | None
    notes: list[str]


class FoundMessage(TypedDict):
    """A message that answers a question.

    Keys:
        signals: Contributions to its score.
        outdated_since: When a fact that it states ended, or was corrected.
    """

    content: str
    score: float
    session_id: str
    timestamp: str
    metadata: dict[str, Any]
    role: str
    turn_id: str
    drawer: str
    pointer: str
    signals: dict[str, float]
    outdated_since: str | None


class FoundMessages(TypedDict):
    results: list[FoundMessage]
    recollection: str | None
    notes: list[str]


class MemoryVersion(TypedDict):
    """One version of a memory.

    Keys:
        id, memory: Of this version; of the memory, shared by all its versions.
        key, value: The predicate and the object.
        supersedes: The version before it.
        active: Whether it is active.
    """

    id: str
    memory: str
    type: str
    subject: str
    key: str
    value: str
    aspect: str | None
    stance: str | None
    text: str
    confidence: float
    source_session: str | None
    source_turn: str | None
    created_at: str
    updated_at: str
    valid_from: str | None
    valid_to: str | None
    supersedes: str | None
    active: bool


class MemoryVersions(TypedDict):
    memories: list[MemoryVersion]
    total: int


class Health(TypedDict):
    """`status` is `ok`, `degraded` or `unavailable`; the others are `ok` or `away`."""

    status: str
    database: str
    redis: str
    embedder: str

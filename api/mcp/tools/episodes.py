"""Episode tools: summaries of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from api.mcp.registry import (
    MOST_FOUND,
    Caller,
    PalaceRequest,
    Question,
    SomeText,
    ToolResponse,
    tool,
)
from palace.knowledge.episodes import latest_episodes, search_episodes_of
from palace.models import Episode, Palace, open_palace

FOUND = 10


class EpisodesRequest(PalaceRequest):
    query: Question | None = Field(
        None, description="Rank by similarity to this; omitted, the latest first."
    )
    limit: int = Field(FOUND, ge=1, le=MOST_FOUND)
    agent_id: SomeText | None = Field(
        None,
        description="Only this agent's episodes: without user_id, with all people that the key "
        "opens.",
    )


class EpisodeFields(ToolResponse):
    id: UUID
    conversation_id: str
    user_id: str | None = Field(description="Whose palace; null for your own.")
    summary: str
    key_decisions: list[Any]
    entities: list[Any]
    started_at: datetime | None
    ended_at: datetime | None
    similarity: float | None = Field(
        description="Cosine to the query, from -1 to 1; null without one."
    )


class EpisodesResponse(ToolResponse):
    episodes: list[EpisodeFields] = Field(description="Best, or newest, first.")


@tool("Search episodes", "read")
def search_episodes(caller: Caller, request: EpisodesRequest) -> EpisodesResponse:
    """Search summaries of earlier conversations, a few sentences each, with decisions."""
    palaces = _palaces(caller, request)
    # With several palaces, the key's row access is the limit.
    with open_palace(palaces[0]) if len(palaces) == 1 else nullcontext():
        return EpisodesResponse(episodes=_found(palaces, request))


def _found(palaces: Sequence[Palace], request: EpisodesRequest) -> list[EpisodeFields]:
    agent = request.agent_id or ""
    if request.query is None:
        newest = latest_episodes(palaces, agent=agent, limit=request.limit)
        return [_fields(episode, None) for episode in newest]
    found = search_episodes_of(palaces, request.query, agent=agent, k=request.limit)
    return [_fields(episode, cosine) for episode, cosine in found]


def _palaces(caller: Caller, request: EpisodesRequest) -> list[Palace]:
    """The one that is named, or for an agent all that the key opens; empty if there is none."""
    if request.agent_id and request.user_id is None:
        return caller.palaces()
    palace = caller.palace(request.user_id)
    return [palace] if palace else []


def _fields(episode: Episode, similarity: float | None) -> EpisodeFields:
    return EpisodeFields(
        id=episode.uuid,
        conversation_id=episode.conversation,
        user_id=episode.palace.subject or None,
        summary=episode.summary,
        key_decisions=episode.key_decisions,
        entities=episode.entities,
        started_at=episode.started_at,
        ended_at=episode.ended_at,
        similarity=similarity,
    )

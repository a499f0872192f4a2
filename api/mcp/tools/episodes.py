"""Episode tools: summaries of conversations."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from api.mcp.callers import Caller
from api.mcp.registry import MOST_FOUND, PalaceRequest, Question, ToolResponse, tool
from palace.knowledge.episodes import search_episodes as search
from palace.models import Episode, Palace

FOUND = 10


class EpisodesRequest(PalaceRequest):
    query: Question | None = Field(
        None, description="Rank by similarity to this; omitted, the latest first."
    )
    limit: int = Field(FOUND, ge=1, le=MOST_FOUND)


class EpisodeFields(ToolResponse):
    id: UUID
    conversation_id: str
    summary: str
    key_decisions: list[Any]
    entities: list[Any]
    started_at: datetime | None
    ended_at: datetime | None


class EpisodesResponse(ToolResponse):
    episodes: list[EpisodeFields] = Field(description="Best, or newest, first.")


@tool("Search episodes", "read")
def search_episodes(caller: Caller, request: EpisodesRequest) -> EpisodesResponse:
    """Search summaries of earlier conversations, a few sentences each, with decisions."""
    palace = caller.palace(request.user_id)
    if palace is None:
        return EpisodesResponse(episodes=[])
    if request.query is None:
        found = latest(palace, request.limit)
    else:
        found = [episode for episode, _ in search(palace, request.query, k=request.limit)]
    return EpisodesResponse(episodes=[_fields(episode) for episode in found])


def latest(palace: Palace, limit: int) -> list[Episode]:
    """Newest first."""
    kept = Episode.objects.within(palace).kept()
    return list(kept.order_by("-created_at", "-pk")[:limit])


def _fields(episode: Episode) -> EpisodeFields:
    return EpisodeFields(
        id=episode.uuid,
        conversation_id=episode.conversation,
        summary=episode.summary,
        key_decisions=episode.key_decisions,
        entities=episode.entities,
        started_at=episode.started_at,
        ended_at=episode.ended_at,
    )

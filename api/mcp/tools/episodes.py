"""Episodes: what conversations came to."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from api.mcp.callers import Caller
from api.mcp.fields import MOST_FOUND, OfSomebody, SomeText, Told
from api.mcp.registry import tool
from palace.knowledge.episodes.episode_search import search
from palace.models import Episode, Palace

FOUND = 10


class EpisodesAsked(OfSomebody):
    query: SomeText | None = Field(
        None, description="Closest to this by meaning; left out, the latest."
    )
    limit: int = Field(FOUND, ge=1, le=MOST_FOUND)


class EpisodeTold(Told):
    id: UUID
    conversation_id: str
    summary: str
    key_decisions: list[Any]
    entities: list[Any]
    started_at: datetime | None
    ended_at: datetime | None


class EpisodesTold(Told):
    episodes: list[EpisodeTold] = Field(description="Best, or newest, first.")


@tool("Search episodes", "read")
def search_episodes(caller: Caller, asked: EpisodesAsked) -> EpisodesTold:
    """What earlier conversations came to, in a few sentences each, with what was decided."""
    palace = caller.palace(asked.user_id)
    if palace is None:
        return EpisodesTold(episodes=[])
    if asked.query is None:
        found = latest(palace, asked.limit)
    else:
        found = [episode for episode, _ in search(palace, asked.query, k=asked.limit)]
    return EpisodesTold(episodes=[_told(episode) for episode in found])


def latest(palace: Palace, limit: int) -> list[Episode]:
    """Newest first."""
    kept = Episode.objects.within(palace).kept()
    return list(kept.order_by("-created_at", "-pk")[:limit])


def _told(episode: Episode) -> EpisodeTold:
    return EpisodeTold(
        id=episode.uuid,
        conversation_id=episode.conversation,
        summary=episode.summary,
        key_decisions=episode.key_decisions,
        entities=episode.entities,
        started_at=episode.started_at,
        ended_at=episode.ended_at,
    )

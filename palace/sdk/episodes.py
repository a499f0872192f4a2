"""The SDK's episodes: store summaries of conversations and search them by meaning.

Reads return nothing for a person without a palace; storing creates one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from isolation import row_access
from isolation.row_access import Access
from palace.knowledge.episodes import episodes_of_conversation, search_episodes_of, store_episode
from palace.models import Episode, Palace
from palace.sdk import arguments
from palace.sdk.arguments import DEFAULT_EPISODES, Moment
from palace.sdk.errors import BadInput, a_call
from palace.sdk.result_conversion import score_of
from palace.sdk.results import EpisodeItem
from palace.sdk.working import scope_of


class EpisodicMemory:
    """The episodes of a palace; returned by `Memory.episodes`."""

    def __init__(self, owner_id: int, user_id: str | None, bound_to: str | None = None) -> None:
        """
        Raises:
            ScopeError: the user_id is invalid; WrongPalace.
        """
        self._owner_id, self._scope = owner_id, scope_of(user_id, bound_to)
        self._serves_all = user_id is None and bound_to is None
        self.row_access = Access(owner=owner_id, subject=self._scope.user)

    def __repr__(self) -> str:
        return f"EpisodicMemory(user_id={self._scope.user or None!r})"

    @a_call
    def store(
        self,
        conversation_id: str,
        summary: str,
        *,
        key_decisions: Sequence[Any] = (),
        entities: Sequence[Any] = (),
        tools: Sequence[Any] = (),
        agent_id: str | None = None,
        started_at: Moment | None = None,
        ended_at: Moment | None = None,
    ) -> EpisodeItem:
        """Store another summary of a conversation; call it outside of a transaction.

        Raises:
            BadInput: an argument cannot be stored.
        """
        agent = _agent(agent_id)
        begun = arguments.moment_of("started_at", started_at)
        over = arguments.moment_of("ended_at", ended_at)
        palace = self._scope.palace_made(self._owner_id)
        episode = store_episode(
            palace,
            conversation=conversation_id,
            summary=summary,
            key_decisions=key_decisions,
            entities=entities,
            tools=tools,
            agent=agent,
            started_at=begun,
            ended_at=over,
        )
        return _item(palace, episode)

    @a_call
    def search(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        limit: int = DEFAULT_EPISODES,
        as_of: Moment | None = None,
    ) -> list[EpisodeItem]:
        """Search episodes by meaning, best first, each with its `score` and `similarity`.

        Args:
            agent_id: Only this agent's episodes; without a `user_id`, those with all people.
            as_of: Only conversations that had started by then.

        Raises:
            BadInput: an argument is invalid; EmptyQuery: the query is blank.
            EmbeddingError: the embedding model fails.
        """
        agent, most = _agent(agent_id), arguments.limit_of(limit)
        moment, query = arguments.moment_of("as_of", as_of), arguments.query_of(query)
        if self._serves_all and agent:
            with row_access.use(Access(owner=self._owner_id)):
                palaces = list(Palace.objects.filter(owner=self._owner_id))
                return _found(palaces, query, agent, most, moment)
        palace = self._scope.palace(self._owner_id)
        return _found([palace], query, agent, most, moment) if palace else []

    @a_call
    def of_conversation(self, conversation_id: str) -> list[EpisodeItem]:
        """All episodes of a conversation, oldest first.

        Raises:
            BadInput: the id is not text.
        """
        if not isinstance(conversation_id, str):
            raise BadInput(f"conversation_id is text, not {conversation_id!r:.60}.")
        palace = self._scope.palace(self._owner_id)
        if palace is None:
            return []
        found = episodes_of_conversation(palace, conversation_id)
        return [_item(palace, one) for one in found]


def _found(
    palaces: Sequence[Palace], query: str, agent: str, limit: int, as_of: datetime | None
) -> list[EpisodeItem]:
    found = search_episodes_of(palaces, query, agent=agent, k=limit, as_of=as_of)
    return [
        _item(one.palace, one) | {"score": score_of(cosine), "similarity": cosine}
        for one, cosine in found
    ]


def _agent(agent_id: object) -> str:
    if agent_id is None:
        return ""
    if not isinstance(agent_id, str) or not agent_id.strip():
        raise BadInput("agent_id is text that is not blank; leave it out to mean every agent.")
    return agent_id


def _item(palace: Palace, episode: Episode) -> EpisodeItem:
    return {
        "id": str(episode.uuid),
        "conversation_id": episode.conversation,
        "user_id": palace.subject or None,
        "agent_id": episode.agent or None,
        "summary": episode.summary,
        "key_decisions": episode.key_decisions,
        "entities": episode.entities,
        "tools": episode.tools,
        "made_by": episode.made_by,
        "started_at": episode.started_at.isoformat() if episode.started_at else None,
        "ended_at": episode.ended_at.isoformat() if episode.ended_at else None,
        "created_at": episode.created_at.isoformat(),
        "updated_at": episode.updated_at.isoformat(),
    }

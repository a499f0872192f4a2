"""Descriptions of the calls about episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locipalace.client import values
from locipalace.client.calls import Call, an_object, at
from locipalace.client.results import EpisodeItem
from locipalace.client.values import Moment

LIMIT = 10


class EpisodeCalls:
    """The episodes of one user's palace; None for the key's own."""

    def __init__(self, user_id: str | None) -> None:
        """
        Raises:
            ScopeError: the user_id is invalid.
        """
        self._scope = values.scope(user_id=user_id)

    def __str__(self) -> str:
        return f"user_id={self._scope.get('user_id')!r}"

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
    ) -> Call[EpisodeItem]:
        """Store another summary of a conversation.

        Raises:
            BadInput: an argument cannot be stored.
        """
        body = values.given(
            conversation_id=conversation_id,
            summary=summary,
            key_decisions=values.listed("key_decisions", key_decisions),
            entities=values.listed("entities", entities),
            tools=values.listed("tools", tools),
            agent_id=agent_id,
            started_at=values.moment("started_at", started_at),
            ended_at=values.moment("ended_at", ended_at),
            **self._scope,
        )
        return Call("POST", "/episodic/store", an_object, body=body)

    def search(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        limit: int = LIMIT,
        as_of: Moment | None = None,
    ) -> Call[list[EpisodeItem]]:
        """Search episodes by meaning, best first, each with its `score` and `similarity`.

        Args:
            agent_id: Only this agent's episodes; without a `user_id`, those with all people.
            as_of: Only conversations that had started by then.

        Raises:
            BadInput: an argument is invalid; EmptyQuery: the query is blank.
            EmbeddingError: the embedding model fails.
        """
        body = values.given(
            query=values.question(query),
            agent_id=agent_id,
            limit=limit,
            as_of=values.moment("as_of", as_of),
            **self._scope,
        )
        return Call("POST", "/episodic/search", at("results"), body=body)

    def of_conversation(self, conversation_id: str) -> Call[list[EpisodeItem]]:
        """All episodes of a conversation, oldest first."""
        path = f"/episodic/{values.path('conversation_id', conversation_id)}"
        return Call("GET", path, at("results"), query=self._scope)

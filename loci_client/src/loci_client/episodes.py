"""Descriptions of the calls about episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loci_client import values
from loci_client.calls import Call, an_object, at
from loci_client.results import EpisodeItem
from loci_client.values import Moment

LIMIT = 10


class EpisodeCalls:
    """Of the palace of one user; None: the key's own."""

    def __init__(self, user_id: str | None) -> None:
        """
        Raises:
            ScopeError: nobody can be called so.
        """
        self._scope = values.scope(user_id=user_id)

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
        """Keep a summary of a conversation beside those there are.

        Raises:
            BadInput: something cannot be kept.
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
        """The episodes closest by meaning, best first, each with its `score`.

        Args:
            agent_id: Only those of this agent.
            as_of: Only those of conversations that had begun then.

        Raises:
            BadInput: an argument cannot be used; EmptyQuery: the question is blank.
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
        """All episodes of a conversation, the oldest first."""
        path = f"/episodic/{values.path('conversation_id', conversation_id)}"
        return Call("GET", path, at("results"), query=self._scope)

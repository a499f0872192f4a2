"""Descriptions of the memory service's calls, which the SDK does not have, of those about episodes,
and of all calls that are bound to the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from locipalace.client import calls
from locipalace.client.calls import Call, Messages, Moment, an_object, at, nothing
from locipalace.client.facts import FactCalls
from locipalace.client.results import EpisodeItem
from locipalace.client.server_results import (
    FoundMessages,
    Health,
    MemoryVersions,
    Recalled,
    TurnKept,
)


class ServiceCalls:
    def add_turn(
        self,
        session_id: str,
        messages: Messages,
        *,
        user_id: str | None = None,
        timestamp: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Call[TurnKept]:
        """Store a conversation's messages verbatim, searchable at once, and extract facts.

        Extraction that takes longer than a minute continues later; `extraction` says so.

        Args:
            session_id: Your own id of the conversation.
            messages: A text that the user said, or a list of {"role", "content"} in order.
            user_id: Whose palace; by default the key's own.
            timestamp: When it was said; defaults to now.
            metadata: Stored with each message.

        Raises:
            BadInput: an argument cannot be stored.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        body = calls.given(
            session_id=session_id,
            user_id=user_id,
            messages=messages,
            timestamp=calls.moment("timestamp", timestamp),
            metadata=metadata,
        )
        return Call("POST", "/turns", an_object, body=body)

    def recall(
        self,
        query: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        max_tokens: int = 1024,
        top_k: int | None = None,
        recipe: str | Sequence[Mapping[str, Any]] | None = None,
        as_of: Moment | None = None,
        agent_id: str | None = None,
    ) -> Call[Recalled]:
        """Recall facts and messages that answer a question: a context for a model, and its sources.

        Args:
            session_id: Append this conversation's latest messages to the context.
            max_tokens: The context's token budget.
            top_k: The maximum number of messages.
            recipe: Its name, or a list of stages such as {"stage": "graph", "hops": 1}.
            as_of: Ignore what was said later.

        Raises:
            BadInput: an argument is invalid; EmptyQuery: the query is blank.
            EmbeddingError: the embedding model fails.
        """
        body = calls.given(
            query=calls.question(query),
            user_id=user_id,
            session_id=session_id,
            max_tokens=max_tokens,
            top_k=top_k,
            recipe=recipe,
            as_of=calls.moment("as_of", as_of),
            agent_id=agent_id,
        )
        return Call("POST", "/recall", an_object, body=body)

    def search_messages(
        self,
        query: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        as_of: Moment | None = None,
        agent_id: str | None = None,
        limit: int = 10,
    ) -> Call[FoundMessages]:
        """Search the messages that answer a question best, each with its scoring signals.

        Args:
            session_id: Search only this conversation.
            as_of: Ignore what was said later.

        Raises:
            As `recall`.
        """
        body = calls.given(
            query=calls.question(query),
            user_id=user_id,
            session_id=session_id,
            as_of=calls.moment("as_of", as_of),
            agent_id=agent_id,
            limit=limit,
        )
        return Call("POST", "/search", an_object, body=body)

    def user_memories(
        self, user_id: str, *, limit: int = 1000, active: bool | None = None
    ) -> Call[MemoryVersions]:
        """List all facts about a person, newest first, with the versions they supersede.

        Args:
            active: Only active facts, or only inactive ones.
        """
        path = f"/users/{calls.path('user_id', user_id)}/memories"
        return Call("GET", path, an_object, query=calls.query_of(limit=limit, active=active))

    def delete_user(self, user_id: str) -> Call[None]:
        """Permanently delete a person's palace; succeeds even if there is none.

        Raises:
            KeyRefused: the key lacks the scope `admin`.
        """
        return Call("DELETE", f"/users/{calls.path('user_id', user_id)}", nothing)

    def delete_session(self, session_id: str, *, user_id: str | None = None) -> Call[None]:
        """Permanently delete a conversation, and the facts that have no other source.

        Args:
            user_id: Whose session. Required if several users have one of this name.

        Raises:
            AmbiguousSession: no user_id is given and several users have one; nothing is deleted.
        """
        path = f"/sessions/{calls.path('session_id', session_id)}"
        return Call("DELETE", path, nothing, query=calls.query_of(user_id=user_id))

    def health(self) -> Call[Health]:
        """The server's health."""
        return Call("GET", "/health", an_object, also=503)


class ServerCalls(FactCalls, ServiceCalls):
    pass


EPISODE_LIMIT = 10


class EpisodeCalls:
    """The episodes of one user's palace; None for the key's own."""

    def __init__(self, user_id: str | None) -> None:
        """
        Raises:
            ScopeError: the user_id is invalid.
        """
        self._scope = calls.scope(user_id=user_id)

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
        body = calls.given(
            conversation_id=conversation_id,
            summary=summary,
            key_decisions=calls.listed("key_decisions", key_decisions),
            entities=calls.listed("entities", entities),
            tools=calls.listed("tools", tools),
            agent_id=agent_id,
            started_at=calls.moment("started_at", started_at),
            ended_at=calls.moment("ended_at", ended_at),
            **self._scope,
        )
        return Call("POST", "/episodic/store", an_object, body=body)

    def search(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        limit: int = EPISODE_LIMIT,
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
        body = calls.given(
            query=calls.question(query),
            agent_id=agent_id,
            limit=limit,
            as_of=calls.moment("as_of", as_of),
            **self._scope,
        )
        return Call("POST", "/episodic/search", at("results"), body=body)

    def of_conversation(self, conversation_id: str) -> Call[list[EpisodeItem]]:
        """All episodes of a conversation, oldest first."""
        path = f"/episodic/{calls.path('conversation_id', conversation_id)}"
        return Call("GET", path, at("results"), query=self._scope)

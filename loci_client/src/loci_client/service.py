"""Descriptions of the memory service's calls, which only a server has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loci_client import values
from loci_client.calls import Call, an_object, nothing
from loci_client.server_results import FoundMessages, Health, MemoryVersions, Recalled, TurnKept
from loci_client.values import Messages, Moment


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
        """Keep messages of a conversation to the byte, findable at once, and learn what they say.

        What a model has not read within a minute is read later; `extraction` says so.

        Args:
            session_id: The conversation, by a name of your own.
            messages: A text that the user says, or a list of {"role", "content"} in order.
            user_id: Whose palace; without it the key's own.
            timestamp: When it was said; the present unless given.
            metadata: Kept beside each message.

        Raises:
            BadInput: something cannot be kept.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        body = values.given(
            session_id=session_id,
            user_id=user_id,
            messages=messages,
            timestamp=values.moment("timestamp", timestamp),
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
        recipe: str | None = None,
        as_of: Moment | None = None,
        agent_id: str | None = None,
    ) -> Call[Recalled]:
        """What is known and was said that answers the question: a context for a model, and sources.

        Args:
            session_id: The latest messages of this conversation end the context.
            max_tokens: Of the context.
            top_k: Of so many messages at most.
            as_of: Leave out what was said later.

        Raises:
            BadInput: an argument cannot be used; EmptyQuery: the question is blank.
            EmbeddingError: the embedding model fails.
        """
        body = values.given(
            query=values.question(query),
            user_id=user_id,
            session_id=session_id,
            max_tokens=max_tokens,
            top_k=top_k,
            recipe=recipe,
            as_of=values.moment("as_of", as_of),
            agent_id=agent_id,
        )
        return Call("POST", "/recall", an_object, body=body)

    def search_messages(
        self,
        query: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        limit: int = 10,
    ) -> Call[FoundMessages]:
        """The messages that answer the question best, best first, each with why.

        Args:
            session_id: Only what was said in this conversation.

        Raises:
            As `recall`.
        """
        body = values.given(
            query=values.question(query), user_id=user_id, session_id=session_id, limit=limit
        )
        return Call("POST", "/search", an_object, body=body)

    def user_memories(
        self, user_id: str, *, limit: int = 1000, active: bool | None = None
    ) -> Call[MemoryVersions]:
        """All that was ever held of a person, newest first, with what took whose place.

        Args:
            active: Only what is held; or only what is not.
        """
        path = f"/users/{values.path('user_id', user_id)}/memories"
        return Call("GET", path, an_object, query=values.query_of(limit=limit, active=active))

    def delete_user(self, user_id: str) -> Call[None]:
        """Delete a person's palace with everything in it, for good; also when there is none.

        Raises:
            KeyRefused: the key has not the scope `admin`.
        """
        return Call("DELETE", f"/users/{values.path('user_id', user_id)}", nothing)

    def delete_session(self, session_id: str, *, user_id: str | None = None) -> Call[None]:
        """Delete a conversation for good, and the facts that rest on it alone.

        Args:
            user_id: Whose. Needed where several users have a session of this name.

        Raises:
            AmbiguousSession: no user is named and several have one; nothing is deleted.
        """
        path = f"/sessions/{values.path('session_id', session_id)}"
        return Call("DELETE", path, nothing, query=values.query_of(user_id=user_id))

    def health(self) -> Call[Health]:
        """Whether the server has what it needs."""
        return Call("GET", "/health", an_object, also=503)

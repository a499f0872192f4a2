"""Descriptions of the fact API's calls: those of palace.sdk.Memory, entities and relations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locipalace.client import calls
from locipalace.client.calls import Call, Messages, Moment, an_object, at, nothing
from locipalace.client.errors import BadAnswer
from locipalace.client.results import (
    AddResults,
    Deleted,
    HistoryRecord,
    MemoryItem,
    MemoryResults,
    UpdatedItem,
)
from locipalace.client.server_results import EntityResults, RelationResults, TimelineResults

LIMIT = 100
MEMORIES = "/v1/memories/"
ENTITIES = "/v1/entities/"


class FactCalls:
    def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        judging_prompt: str | None = None,
        timestamp: Moment | None = None,
    ) -> Call[AddResults]:
        """Store messages verbatim and extract facts, each judged against known ones.

        Args:
            messages: A text that the user said, or a list of {"role", "content"} in order.
            metadata: Stored with each new memory.
            filters: Judge new facts only against memories in the scope that match.
            prompt: Replaces the server's extraction prompt.
            judging_prompt: Replaces the server's prompt for judging new facts.
            timestamp: When it was said; defaults to now.

        Raises:
            ScopeError: no id is given; BadInput: an argument cannot be stored; BadFilter.
        """
        body = calls.given(
            messages=messages,
            metadata=metadata,
            filters=calls.filters(filters),
            prompt=prompt,
            judging_prompt=judging_prompt,
            timestamp=calls.moment("timestamp", timestamp),
            **calls.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        )
        return Call("POST", MEMORIES, an_object, body=body)

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = LIMIT,
        filters: Mapping[str, Any] | None = None,
        true_at: Moment | None = None,
        known_at: Moment | None = None,
    ) -> Call[MemoryResults]:
        """Search memories by meaning, best first, each with its score.

        Args:
            true_at: What was true then, instead of now.
            known_at: What was recorded by then, whatever was learnt since.

        Raises:
            ScopeError, BadFilter, BadInput: an argument is invalid; EmptyQuery: it is blank.
            EmbeddingError: the embedding model fails.
        """
        body = calls.given(
            query=calls.question(query),
            limit=limit,
            filters=calls.filters(filters),
            true_at=calls.moment("true_at", true_at),
            known_at=calls.moment("known_at", known_at),
            **calls.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        )
        return Call("POST", f"{MEMORIES}search/", an_object, body=body)

    def get(self, memory_id: str) -> Call[MemoryItem | None]:
        """An active memory, or one that was stated as past; else None."""
        return Call("GET", _memory(memory_id), an_object, absent=lambda: None)

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = LIMIT,
        filters: Mapping[str, Any] | None = None,
        true_at: Moment | None = None,
        known_at: Moment | None = None,
    ) -> Call[MemoryResults]:
        """List the memories within the scope, newest first; arguments as `search`."""
        query = calls.query_of(
            limit=limit,
            filters=calls.filters(filters),
            true_at=calls.moment("true_at", true_at),
            known_at=calls.moment("known_at", known_at),
            **calls.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        )
        return Call("GET", MEMORIES, an_object, query=query)

    def update(self, memory_id: str, new_text: str) -> Call[UpdatedItem]:
        """Correct a memory; object, connections, sources and vector are updated from the new text.

        The previous text stays in its history. `changed` lists the updated fields, `note` says what
        could not be updated.

        Raises:
            NotFoundError: there is no such memory; BadInput: the text cannot be stored.
            FactConflict: another memory already states the only possible value.
        """
        return Call("PUT", _memory(memory_id), an_object, body={"text": new_text})

    def delete(self, memory_id: str) -> Call[Deleted]:
        """Delete a memory; its history stays.

        Messages given to `add` that only this memory uses go to the trash. The result is
        1, and its `kept` lists the messages that stay.

        Raises:
            NotFoundError: there is no such memory.
        """
        return Call("DELETE", _memory(memory_id), _deleted)

    def delete_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> Call[Deleted]:
        """Delete all memories within the scope; returns their number.

        Messages given to `add` within the scope that no memory uses go to the trash, too;
        with an `agent_id`, only those that the deleted memories used.
        """
        scope = calls.scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        return Call("DELETE", MEMORIES, _deleted, query=scope)

    def history(self, memory_id: str) -> Call[list[HistoryRecord]]:
        """List all changes of a memory, oldest first; also of a deleted one.

        Empty if there never was such a memory.
        """
        return Call("GET", f"{_memory(memory_id)}history/", _a_list)

    def reset(self) -> Call[None]:
        """Permanently delete all memories in all palaces of the key, with their history.

        Messages given to `add` are deleted for good with them. Those that came by a chat, a turn
        or an import stay in their drawers, and are not read for facts again.

        Raises:
            KeyRefused: the key lacks the scope `admin`.
        """
        return Call("POST", "/v1/reset/", nothing)

    def entities(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = LIMIT,
    ) -> Call[EntityResults]:
        """List entities by kind and name.

        Raises:
            ScopeError, BadInput: an argument is invalid.
        """
        scope = calls.scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        return Call("GET", ENTITIES, an_object, query=calls.query_of(limit=limit, **scope))

    def relations(
        self,
        name: str,
        *,
        type: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = LIMIT,
        hops: int = 1,
        true_at: Moment | None = None,
        known_at: Moment | None = None,
    ) -> Call[RelationResults]:
        """List an entity's relations, nearest and then latest first.

        Args:
            type: The kind, if several entities have the name.
            hops: From 1 to 3: follow the relations of what is reached, up to so many.
            true_at, known_at: As `search`.

        Raises:
            NotFoundError: no entity has this name; ScopeError, BadInput.
        """
        query = calls.query_of(
            type=type,
            limit=limit,
            hops=hops,
            true_at=calls.moment("true_at", true_at),
            known_at=calls.moment("known_at", known_at),
            **calls.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        )
        return Call("GET", f"{_entity(name)}relations/", an_object, query=query)

    def timeline(
        self,
        name: str,
        *,
        type: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        known_at: Moment | None = None,
    ) -> Call[TimelineResults]:
        """List everything that became true about an entity, in chronological order.

        Excludes what was never true; arguments and errors as `relations`.
        """
        query = calls.query_of(
            type=type,
            known_at=calls.moment("known_at", known_at),
            **calls.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        )
        return Call("GET", f"{_entity(name)}timeline/", an_object, query=query)


def _memory(memory_id: object) -> str:
    return f"{MEMORIES}{calls.part('memory_id', memory_id)}/"


def _entity(name: object) -> str:
    return f"{ENTITIES}{calls.path('name', name)}/"


def _deleted(answer: Any) -> Deleted:
    if answer is None:  # One memory was deleted, and no source stays.
        return Deleted(1)
    counts = an_object(answer)
    return Deleted(at("deleted")(counts), counts.get("kept", ()), counts.get("kept_total"))


def _a_list(answer: Any) -> Any:
    if not isinstance(answer, list):
        raise BadAnswer(f"The server answered {answer!r:.60}, where a list was to come.")
    return answer

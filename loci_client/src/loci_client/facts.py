"""Descriptions of the fact API's calls: what palace.sdk.Memory does, and what connects memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loci_client import values
from loci_client.calls import Call, an_object, at, nothing
from loci_client.errors import BadAnswer
from loci_client.results import (
    AddResults,
    Deleted,
    HistoryRecord,
    MemoryItem,
    MemoryResults,
    UpdatedItem,
)
from loci_client.server_results import EntityResults, RelationResults, TimelineResults
from loci_client.values import Messages, Moment

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
        """Keep messages to the byte, and what they say as facts, each judged beside those known.

        Args:
            messages: A text that the user says, or a list of {"role", "content"} in order.
            metadata: Kept with each memory that is made.
            filters: Of the memories within the scope, only those that meet them are judged beside.
            prompt: What a model is told to look for, in place of the server's own instructions.
            judging_prompt: Likewise, how it is told to judge what it found beside what is known.
            timestamp: When it was said; the present unless given.

        Raises:
            ScopeError: it is not said whose; BadInput: something cannot be kept; BadFilter.
        """
        body = values.given(
            messages=messages,
            metadata=metadata,
            filters=values.filters(filters),
            prompt=prompt,
            judging_prompt=judging_prompt,
            timestamp=values.moment("timestamp", timestamp),
            **values.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
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
        """The memories closest to the question by meaning, best first, each with its score.

        Args:
            true_at: What was so then, in place of what is held now.
            known_at: What was held then, whatever was learnt since.

        Raises:
            ScopeError, BadFilter, BadInput: an argument cannot be used; EmptyQuery: it is blank.
            EmbeddingError: the embedding model fails.
        """
        body = values.given(
            query=values.question(query),
            limit=limit,
            filters=values.filters(filters),
            true_at=values.moment("true_at", true_at),
            known_at=values.moment("known_at", known_at),
            **values.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        )
        return Call("POST", f"{MEMORIES}search/", an_object, body=body)

    def get(self, memory_id: str) -> Call[MemoryItem | None]:
        """A memory that is held, or that was told as past; None where there is none."""
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
        """All memories within the scope, newest first; arguments as `search`."""
        query = values.query_of(
            limit=limit,
            filters=values.filters(filters),
            true_at=values.moment("true_at", true_at),
            known_at=values.moment("known_at", known_at),
            **values.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        )
        return Call("GET", MEMORIES, an_object, query=query)

    def update(self, memory_id: str, new_text: str) -> Call[UpdatedItem]:
        """Correct a memory: object, connections, sources and vector follow the new sentence.

        What it said before stays in its history. `changed` says what followed, `note` what could
        not.

        Raises:
            NotFoundError: there is no such memory; BadInput: the text cannot be kept.
            FactConflict: another memory already says what there can be one of.
        """
        return Call("PUT", _memory(memory_id), an_object, body={"text": new_text})

    def delete(self, memory_id: str) -> Call[Deleted]:
        """Delete a memory; its history stays.

        The messages given to `add` that only this memory rests on go to the trash. The result is
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
        """`delete` for all memories within the scope; returns how many there were.

        Messages given to `add` within the scope that no memory rests on go to the trash, too;
        with an `agent_id`, only those the deleted memories rest on.
        """
        scope = values.scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        return Call("DELETE", MEMORIES, _deleted, query=scope)

    def history(self, memory_id: str) -> Call[list[HistoryRecord]]:
        """All that happened to a memory, oldest first; also of one that was deleted.

        Raises:
            NotFoundError: there is no such memory, and never was.
        """
        return Call("GET", f"{_memory(memory_id)}history/", _a_list)

    def reset(self) -> Call[None]:
        """Delete all memories with vectors and history, for everybody whom the key opens.

        Messages given to `add` are deleted for good with them. Those that came by a chat, a turn
        or an import stay in their drawers, and are not read for facts again.

        Raises:
            KeyRefused: the key has not the scope `admin`.
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
        """Who and what is spoken of, by kind and name.

        Raises:
            ScopeError, BadInput: an argument cannot be used.
        """
        scope = values.scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        return Call("GET", ENTITIES, an_object, query=values.query_of(limit=limit, **scope))

    def relations(
        self,
        name: str,
        *,
        type: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = LIMIT,
        true_at: Moment | None = None,
        known_at: Moment | None = None,
    ) -> Call[RelationResults]:
        """What connects somebody or something with others, the latest first.

        Args:
            type: Of the entity, where several have the name.
            true_at, known_at: As `search`.

        Raises:
            NotFoundError: nothing has this name; ScopeError, BadInput.
        """
        query = values.query_of(
            type=type,
            limit=limit,
            true_at=values.moment("true_at", true_at),
            known_at=values.moment("known_at", known_at),
            **values.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
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
        """The story of somebody or something, in the order in which things came true.

        With what is over, and without what was never true; arguments and errors as `relations`.
        """
        query = values.query_of(
            type=type,
            known_at=values.moment("known_at", known_at),
            **values.scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        )
        return Call("GET", f"{_entity(name)}timeline/", an_object, query=query)


def _memory(memory_id: object) -> str:
    return f"{MEMORIES}{values.part('memory_id', memory_id)}/"


def _entity(name: object) -> str:
    return f"{ENTITIES}{values.path('name', name)}/"


def _deleted(answer: Any) -> Deleted:
    if answer is None:  # One was deleted, and no words of it stay.
        return Deleted(1)
    told = an_object(answer)
    return Deleted(at("deleted")(told), told.get("kept", ()), told.get("kept_total"))


def _a_list(answer: Any) -> Any:
    if not isinstance(answer, list):
        raise BadAnswer(f"The server answered {answer!r:.60}, where a list was to come.")
    return answer

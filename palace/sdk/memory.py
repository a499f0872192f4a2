"""Memory: what a program tells it, it keeps word by word, and as facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.contrib.auth.models import User
from django.db.models import Q

from isolation import reach
from palace.curation.fact_deletion import delete_facts, purge_words
from palace.errors import EmptyQuery
from palace.knowledge.facts import fact_edits
from palace.knowledge.facts.filters import condition_of
from palace.models import Fact, Palace
from palace.models.facts import FactQuerySet
from palace.models.palace import PalaceQuerySet
from palace.recall.query import as_asked
from palace.sdk import arguments, by_id, ingestion, process, shown
from palace.sdk.arguments import Messages, Moment
from palace.sdk.calls import translate_errors
from palace.sdk.episodes import EpisodicMemory
from palace.sdk.fact_search import find
from palace.sdk.owners import account_of
from palace.sdk.results import (
    AddResults,
    Deleted,
    HistoryRecord,
    MemoryItem,
    MemoryResults,
    UpdatedItem,
)
from palace.sdk.scope import CallScope
from palace.sdk.working import ConversationMemory, WorkingMemory
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space
from palace.storage.indexing.vector_index import PgVectorIndex, VectorIndex, using

P = ParamSpec("P")
R = TypeVar("R")

LIMIT = 100


def _a_call(method: Callable[Concatenate[Memory, P], R]) -> Callable[Concatenate[Memory, P], R]:
    """With this memory's index in use, and with errors as callers know them."""

    @wraps(method)
    def called(memory: Memory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        opened = reach.open_person(memory.owner.pk, memory.subject)
        with using(memory.vector_index), translate_errors(), opened:
            return method(memory, *args, **kwargs)

    return called


class Memory:
    """The memories of one owner and of those whom the owner serves.

    Each call but those by id says whose: `user_id` names a palace of its own, without it the
    owner's; `agent_id` and `run_id` narrow it. Safe to be used by many threads.
    """

    def __init__(
        self,
        owner: User | str | None = None,
        *,
        vector_index: VectorIndex | None = None,
        subject: str | None = None,
    ) -> None:
        """
        Args:
            owner: The name or address of an account, made without a password where there is
                none; None: this machine's own.
            vector_index: Where facts' vectors are kept and searched; Postgres unless given.
            subject: The one palace that all calls are about, by its `user_id`, empty for the
                owner's own; a call that names another raises WrongPalace, and no id of another is
                found. None: all of the owner's.

        Raises:
            SetupError: what is needed cannot be started; says what to do.
            BadInput: nobody can be called so.
        """
        with translate_errors():
            process.make_ready()
            self.owner = account_of(owner)
        self.subject = subject
        self.vector_index = vector_index or PgVectorIndex()
        # What others make facts of has its vectors there.
        self._shares_index = isinstance(self.vector_index, PgVectorIndex)

    @_a_call
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
    ) -> AddResults:
        """Keep messages to the byte, and what they say as facts, each judged beside those known.

        A model that fails is done without: what the local rules find is kept. Should the process
        die amid it, a worker reads what was kept, with the same arguments. Call it outside of a
        transaction.

        Args:
            messages: A text that the user says, or a list of {"role", "content"} in order.
            metadata: Kept with each memory that is made.
            filters: Of the memories within the scope, only those that meet them are judged beside.
            prompt: What a model is told to look for, in place of our own instructions; without a
                model it has no effect.
            judging_prompt: Likewise, how it is told to judge what it found beside what is known.
            timestamp: When it was said; the present unless given.

        Raises:
            ScopeError: it is not said whose; BadInput: something cannot be kept; BadFilter.
        """
        what = ingestion.Told.read(
            self._scope(user_id, agent_id, run_id),
            messages,
            metadata=metadata,
            filters=filters,
            prompt=prompt,
            judging_prompt=judging_prompt,
            timestamp=timestamp,
        )
        palace = what.scope.palace_made(self.owner.pk)
        self._catch_up(palace)
        return ingestion.add(palace, what)

    @_a_call
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
    ) -> MemoryResults:
        """The memories closest to the question by meaning, best first, each with its score.

        Where it names somebody or something, memories of what these are connected to have a third
        of the places.

        Args:
            true_at: What was so then, in place of what is held now.
            known_at: What was held then, whatever was learnt since.

        Raises:
            ScopeError, BadFilter, BadInput: an argument cannot be used; EmptyQuery: it is blank.
            EmbeddingError: the embedding model fails.
        """
        scope, limit = self._scope(user_id, agent_id, run_id), arguments.limit_of(limit)
        wanted = Q() if filters is None else condition_of(filters)
        if not as_asked(query):
            raise EmptyQuery
        palace = scope.palace(self.owner.pk)
        if palace is None:
            return {"results": []}
        facts = _facts(palace, scope, true_at, known_at)
        self._catch_up(palace)
        if not self._shares_index:
            fill_missing(palace, active_space(), list(facts))
        pairs = find(palace, query, facts, wanted, limit=limit)
        items = shown.items(palace, [fact for fact, _ in pairs])
        for item, (_, cosine) in zip(items, pairs, strict=True):
            item["score"] = shown.score_of(cosine)
        return {"results": items}

    @_a_call
    def get(self, memory_id: str) -> MemoryItem | None:
        """A memory that is held, or that was told as past; None where there is none."""
        return by_id.find(self._palaces(), memory_id)

    @_a_call
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
    ) -> MemoryResults:
        """All memories within the scope, newest first; arguments as `search`."""
        scope, limit = self._scope(user_id, agent_id, run_id), arguments.limit_of(limit)
        wanted = Q() if filters is None else condition_of(filters)
        palace = scope.palace(self.owner.pk)
        if palace is None:
            return {"results": []}
        facts = _facts(palace, scope, true_at, known_at).filter(wanted)
        found = facts.select_related("subject").order_by("-recorded_at", "-pk")
        return {"results": shown.items(palace, list(found[:limit]))}

    @_a_call
    def update(self, memory_id: str, new_text: str) -> UpdatedItem:
        """Correct a memory: object, connections, sources and vector follow the new sentence.

        What it said before stays in its history. `changed` says what followed, `note` what could
        not.

        Raises:
            NotFoundError: there is no such memory; BadInput: the text cannot be kept.
            FactConflict: another memory already says what there can be one of.
        """
        return by_id.rewrite(self._palaces(), memory_id, new_text)

    @_a_call
    def delete(self, memory_id: str) -> Deleted:
        """Delete a memory; its history stays.

        The messages given to `add` that only this memory rests on go to the trash. The result is
        1, and its `kept` lists the messages that stay.

        Raises:
            NotFoundError: there is no such memory.
        """
        return by_id.delete(self._palaces(), memory_id)

    @_a_call
    def delete_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> Deleted:
        """`delete` for all memories within the scope; returns how many there were.

        Messages given to `add` within the scope that no memory rests on go to the trash, too;
        with an `agent_id`, only those the deleted memories rest on.
        """
        scope = self._scope(user_id, agent_id, run_id)
        palace = scope.palace(self.owner.pk)
        if palace is None:
            return Deleted(0)
        facts = scope.narrow(Fact.objects.all())
        return shown.deleted(delete_facts(palace, facts, scope.writing(), scope.added()))

    @_a_call
    def history(self, memory_id: str) -> list[HistoryRecord]:
        """All that happened to a memory, oldest first; also of one that was deleted.

        Raises:
            NotFoundError: there is no such memory, and never was.
        """
        return by_id.history(self._palaces(), memory_id)

    @_a_call
    def reset(self) -> None:
        """Delete all of the owner's memories with vectors and history, for everybody served.

        Messages given to `add` are deleted for good with them. Those that came by a chat, a turn
        or an import stay in their drawers, and are not read for facts again.
        """
        for palace in self._palaces():
            self._catch_up(palace)
            fact_edits.forget(palace, Fact.objects.all())
            purge_words(palace)

    def working(self, namespace: str, *, user_id: str | None = None) -> WorkingMemory:
        """Working memory as a `session/<id>`, `patrol/<name>` or `subagent/<id>` has it.

        Args:
            user_id: Whose palace; without it the owner's own.

        Raises:
            BadInput: it is no namespace; ScopeError: nobody can be called so.
        """
        return WorkingMemory(self.owner.pk, namespace, user_id, self.subject)

    def conversation(
        self, conversation_id: str, *, user_id: str | None = None
    ) -> ConversationMemory:
        """What is noted of a conversation, by whatever id; arguments and errors as `working`."""
        return ConversationMemory(self.owner.pk, conversation_id, user_id, self.subject)

    def episodes(self, *, user_id: str | None = None) -> EpisodicMemory:
        """What conversations came to.

        Args:
            user_id: Whose palace; without it the owner's own.

        Raises:
            ScopeError: nobody can be called so.
        """
        return EpisodicMemory(self.owner.pk, user_id, self.subject)

    def _catch_up(self, palace: Palace) -> None:
        """What others have deleted for good leaves an index that is this program's own."""
        if not self._shares_index:
            keys = Fact.objects.within(palace).values_list("pk", flat=True)
            self.vector_index.retain(palace, list(keys))

    def _scope(self, user_id: str | None, agent_id: str | None, run_id: str | None) -> CallScope:
        return CallScope.read(user_id, agent_id, run_id, bound_to=self.subject)

    def _palaces(self) -> PalaceQuerySet:
        palaces = Palace.objects.filter(owner=self.owner.pk).order_by("pk")
        return palaces if self.subject is None else palaces.filter(subject=self.subject)


def _facts(
    palace: Palace, scope: CallScope, true_at: Moment | None, known_at: Moment | None
) -> FactQuerySet:
    """Of a scope, as of a moment of either clock."""
    facts = Fact.objects.within(palace).as_of(
        true_at=arguments.moment_of("true_at", true_at),
        known_at=arguments.moment_of("known_at", known_at),
    )
    return scope.narrow(facts)

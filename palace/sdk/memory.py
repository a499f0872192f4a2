"""Memory: store messages verbatim and as facts, search and edit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from django.contrib.auth.models import User
from django.db.models import Q

from isolation import row_access
from language.errors import EmptyQuery
from palace.curation.deletion import delete_facts, forget_facts
from palace.knowledge.facts.filters import condition_of
from palace.models import Fact, Palace, PalaceQuerySet
from palace.recall import normalize_query
from palace.sdk import arguments, operations, process, result_conversion
from palace.sdk.arguments import (
    DEFAULT_RESULTS,
    CallScope,
    Messages,
    Moment,
    account_of,
    read_bound,
)
from palace.sdk.configuration import Configuration
from palace.sdk.episodes import EpisodicMemory
from palace.sdk.errors import translate_errors
from palace.sdk.results import (
    AddResults,
    Deleted,
    HistoryRecord,
    MemoryItem,
    MemoryResults,
    UpdatedItem,
)
from palace.sdk.working import ConversationMemory, WorkingMemory
from palace.storage.indexing.fact_vectors import (
    PgVectorIndex,
    VectorIndex,
    fill_missing,
    may_be_away,
    using,
)
from palace.storage.indexing.spaces import active_space
from settings_app.models import asking

P = ParamSpec("P")
R = TypeVar("R")


def _a_call(method: Callable[Concatenate[Memory, P], R]) -> Callable[Concatenate[Memory, P], R]:
    """Decorate a method: use this memory's vector index, and translate errors."""

    @wraps(method)
    def called(memory: Memory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        opened = row_access.open_account(memory.owner.pk, memory.subject)
        model = asking(memory._configuration.endpoint)
        with using(memory.vector_index), model, translate_errors(), opened:
            return method(memory, *args, **kwargs)

    return called


class Memory:
    """The memories of one owner and of the owner's users.

    Each call except those by id names a scope: `user_id` selects a palace, by default the owner's;
    `agent_id` and `run_id` narrow it. Thread-safe.
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
            owner: The name or e-mail address of an account, created without a password if missing;
                None: this machine's owner.
            vector_index: Stores and searches the facts' vectors; by default the store that
                LOCI_VECTOR_STORE names, which is Postgres if it is not set.
            subject: Bind all calls to the palace of this `user_id`, empty for the owner's own; a
                call that names another raises WrongPalace, and ids of others are not found. None:
                all of the owner's.

        Raises:
            SetupError: a service cannot be started; says what to do.
            BadInput: the owner's name is invalid, or `vector_index` is no index.
            ScopeError: the subject is blank or not text.
        """
        self.subject = read_bound(subject)
        self.vector_index = arguments.read_index(vector_index)
        with translate_errors():
            process.make_ready()
            self.owner = account_of(owner)
        # Facts extracted elsewhere have their vectors there, too.
        self._configuration = Configuration()
        self._shares_index = vector_index is None or isinstance(vector_index, PgVectorIndex)

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        *,
        owner: User | str | None = None,
        subject: str | None = None,
    ) -> Self:
        """A Memory whose models, vector store and prompts a dictionary names.

        Args:
            config: Entries `llm`, `embedder`, `vector_store` and `custom_prompts`; what it leaves
                out is as the owner and the server have it.
            owner, subject: As of the constructor.

        Raises:
            BadInput: an entry is unknown, not supported, or makes no sense; says which.
            SetupError: the palaces are embedded with another model; or as of the constructor.
            VectorStoreError: the vector store cannot be opened, as of `open_vector_store`.
        """
        configuration = Configuration.read(config)
        with translate_errors():
            process.make_ready()
            configuration.adopt_embedder()
            index = configuration.open_index()
        memory = cls(owner, vector_index=index, subject=subject)
        memory._configuration = configuration
        return memory

    def __repr__(self) -> str:
        return f"Memory(owner={self.owner.get_username()!r}, subject={self.subject!r})"

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
        """Store messages verbatim and extract facts, each judged against known ones.

        If a model fails, the local rules' results are stored. If the process dies, a worker
        finishes the extraction with the same arguments. Call it outside of a transaction.

        Args:
            messages: A text that the user said, or a list of {"role", "content"} in order.
            metadata: Stored with each new memory.
            filters: Judge new facts only against memories in the scope that match.
            prompt: Replaces our extraction prompt; without a model it has no effect.
            judging_prompt: Replaces our prompt for judging new facts, likewise.
            timestamp: When it was said; defaults to now.

        Raises:
            ScopeError: no id is given; BadInput: an argument cannot be stored; BadFilter.
        """
        what = operations.IngestionRequest.read(
            self._scope(user_id, agent_id, run_id),
            messages,
            metadata=metadata,
            filters=filters,
            prompt=self._configuration.prompt if prompt is None else prompt,
            judging_prompt=(
                self._configuration.judging_prompt if judging_prompt is None else judging_prompt
            ),
            timestamp=timestamp,
        )
        palace = what.scope.palace_made(self.owner.pk)
        self._catch_up(palace)
        return operations.add(palace, what)

    @_a_call
    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = DEFAULT_RESULTS,
        filters: Mapping[str, Any] | None = None,
        true_at: Moment | None = None,
        known_at: Moment | None = None,
    ) -> MemoryResults:
        """Search memories by meaning, best first, each with its score.

        If the query names entities, a third of the results go to memories of them and of their
        direct neighbours.

        Args:
            true_at: What was true then, instead of now.
            known_at: What was recorded by then, whatever was learnt since.

        Raises:
            ScopeError, BadFilter, BadInput: an argument is invalid; EmptyQuery: it is blank.
            EmbeddingError: the embedding model fails.
        """
        scope, limit = self._scope(user_id, agent_id, run_id), arguments.limit_of(limit)
        wanted = Q() if filters is None else condition_of(filters)
        if not normalize_query(arguments.query_of(query)):
            raise EmptyQuery
        palace = scope.palace(self.owner.pk)
        if palace is None:
            return {"results": []}
        facts = operations.facts_in(palace, scope, true_at, known_at)
        self._catch_up(palace)
        if not self._shares_index:
            fill_missing(palace, active_space(), list(facts))
        pairs = operations.search_facts(palace, query, facts, wanted, limit=limit)
        items = result_conversion.items(palace, [fact for fact, _ in pairs])
        for item, (_, cosine) in zip(items, pairs, strict=True):
            item["score"] = result_conversion.score_of(cosine)
            item["similarity"] = cosine
        return {"results": items}

    @_a_call
    def get(self, memory_id: str) -> MemoryItem | None:
        """An active memory, or one that was stated as past; else None."""
        return operations.find(self._palaces(), memory_id)

    @_a_call
    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = DEFAULT_RESULTS,
        filters: Mapping[str, Any] | None = None,
        true_at: Moment | None = None,
        known_at: Moment | None = None,
    ) -> MemoryResults:
        """List the memories within the scope, newest first; arguments as `search`."""
        scope, limit = self._scope(user_id, agent_id, run_id), arguments.limit_of(limit)
        wanted = Q() if filters is None else condition_of(filters)
        palace = scope.palace(self.owner.pk)
        if palace is None:
            return {"results": []}
        facts = operations.facts_in(palace, scope, true_at, known_at).filter(wanted)
        found = facts.select_related("subject").order_by("-recorded_at", "-pk")
        return {"results": result_conversion.items(palace, list(found[:limit]))}

    @_a_call
    def update(self, memory_id: str, new_text: str) -> UpdatedItem:
        """Correct a memory; object, connections, sources and vector are updated from the new text.

        The previous text stays in its history. `changed` lists the updated fields, `note` says what
        could not be updated.

        Raises:
            NotFoundError: there is no such memory; BadInput: the text cannot be stored.
            FactConflict: another memory already states the only possible value.
        """
        return operations.rewrite(self._palaces(), memory_id, new_text)

    @_a_call
    def delete(self, memory_id: str) -> Deleted:
        """Delete a memory; its history stays.

        Messages given to `add` that only this memory uses go to the trash. The result is 1, and its
        `kept` lists the messages that stay.

        Raises:
            NotFoundError: there is no such memory.
        """
        return operations.delete(self._palaces(), memory_id)

    @_a_call
    def delete_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> Deleted:
        """Delete all memories within the scope; returns their number.

        Messages given to `add` within the scope that no memory uses go to the trash, too; with an
        `agent_id`, only those that the deleted memories used.
        """
        scope = self._scope(user_id, agent_id, run_id)
        palace = scope.palace(self.owner.pk)
        if palace is None:
            return Deleted(0)
        facts = scope.narrow(Fact.objects.all())
        return result_conversion.deleted(
            delete_facts(palace, facts, scope.writing(), scope.added())
        )

    @_a_call
    def history(self, memory_id: str) -> list[HistoryRecord]:
        """List all changes of a memory, oldest first; also of a deleted one.

        Empty if there never was such a memory.
        """
        return operations.history(self._palaces(), memory_id)

    @_a_call
    def reset(self) -> None:
        """Permanently delete all memories of the owner and the owner's users, with their history.

        Messages given to `add` are deleted with them. Those from a chat, a turn or an import stay
        in their drawers, and no facts are extracted from them again.
        """
        for palace in self._palaces():
            self._catch_up(palace)
            forget_facts(palace)

    def working(self, namespace: str, *, user_id: str | None = None) -> WorkingMemory:
        """The working memory of a namespace: `session/<id>`, `patrol/<name>` or `subagent/<id>`.

        Args:
            user_id: Whose palace; by default the owner's own.

        Raises:
            BadInput: the namespace is invalid; ScopeError: the user_id is invalid.
        """
        return WorkingMemory(self.owner.pk, namespace, user_id, self.subject)

    def conversation(
        self, conversation_id: str, *, user_id: str | None = None
    ) -> ConversationMemory:
        """A conversation's fields, by any id; arguments and errors as `working`."""
        return ConversationMemory(self.owner.pk, conversation_id, user_id, self.subject)

    def episodes(self, *, user_id: str | None = None) -> EpisodicMemory:
        """Summaries of conversations.

        Args:
            user_id: Whose palace; by default the owner's own.

        Raises:
            ScopeError: the user_id is invalid.
        """
        return EpisodicMemory(self.owner.pk, user_id, self.subject)

    def _catch_up(self, palace: Palace) -> None:
        """Remove facts purged elsewhere from the program's own vector index."""
        if self.vector_index is not None and not self._shares_index:
            keys = Fact.objects.within(palace).values_list("pk", flat=True)
            with may_be_away("Vectors of purged facts will be removed at a later call"):
                self.vector_index.retain(palace, list(keys))

    def _scope(self, user_id: str | None, agent_id: str | None, run_id: str | None) -> CallScope:
        return CallScope.read(user_id, agent_id, run_id, bound_to=self.subject)

    def _palaces(self) -> PalaceQuerySet:
        palaces = Palace.objects.filter(owner=self.owner.pk).order_by("pk")
        return palaces if self.subject is None else palaces.filter(subject=self.subject)

"""Memory: the synchronous client; and AsyncMemory, the same for asyncio."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from locipalace.client.calls import Awaits, C_co, Call, Waits, awaiting, waiting
from locipalace.client.links import RETRIES, TIMEOUT_S, AsyncLink, Link, way_to
from locipalace.client.service import EpisodeCalls, ServerCalls
from locipalace.client.working import ConversationCalls, EntryCalls

R = TypeVar("R")


class _Linked(Waits[C_co]):
    def __init__(self, link: Link, calls: C_co) -> None:
        self._link, self._calls = link, calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._calls})"

    def _send(self, call: Call[R]) -> R:
        return self._link.send(call)


class Memory(_Linked[ServerCalls]):
    """The memories of a key: its owner's, and those of the owner's users.

    Each call except those by id names a scope: `user_id` selects a palace, by default the
    owner's; `agent_id` and `run_id` narrow it. Thread-safe.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        """
        Args:
            base_url: The server's; by default LOCI_URL, else http://localhost:8000.
            api_key: From the server's page /settings/keys/; by default LOCI_API_KEY.
            timeout_s: For each attempt, in seconds.
            retries: How often a call is sent again when the server is away, busy or has had too
                many requests. It is never done twice.

        Raises:
            SetupError: there is no key, or the address is invalid.
        """
        way = way_to(base_url, api_key, timeout_s=timeout_s, retries=retries)
        super().__init__(Link(way), ServerCalls())

    def working(self, namespace: str, *, user_id: str | None = None) -> WorkingMemory:
        """The working memory of a namespace: `session/<id>`, `patrol/<name>` or `subagent/<id>`.

        Args:
            user_id: Whose palace; by default the key's own.

        Raises:
            BadInput: the namespace is invalid; ScopeError: the user_id is invalid.
        """
        return WorkingMemory(self._link, EntryCalls(namespace, user_id))

    def conversation(
        self, conversation_id: str, *, user_id: str | None = None
    ) -> ConversationMemory:
        """A conversation's fields, by any id; arguments and errors as `working`."""
        return ConversationMemory(self._link, ConversationCalls(conversation_id, user_id))

    def episodes(self, *, user_id: str | None = None) -> EpisodicMemory:
        """Summaries of conversations.

        Args:
            user_id: Whose palace; by default the key's own.

        Raises:
            ScopeError: the user_id is invalid.
        """
        return EpisodicMemory(self._link, EpisodeCalls(user_id))

    def close(self) -> None:
        """Close the connections of this memory and the objects it returned."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory(base_url={self._link.way.base_url!r})"

    add = waiting(ServerCalls.add)
    search = waiting(ServerCalls.search)
    get = waiting(ServerCalls.get)
    get_all = waiting(ServerCalls.get_all)
    update = waiting(ServerCalls.update)
    delete = waiting(ServerCalls.delete)
    delete_all = waiting(ServerCalls.delete_all)
    history = waiting(ServerCalls.history)
    reset = waiting(ServerCalls.reset)
    entities = waiting(ServerCalls.entities)
    relations = waiting(ServerCalls.relations)
    timeline = waiting(ServerCalls.timeline)

    add_turn = waiting(ServerCalls.add_turn)
    recall = waiting(ServerCalls.recall)
    search_messages = waiting(ServerCalls.search_messages)
    user_memories = waiting(ServerCalls.user_memories)
    delete_user = waiting(ServerCalls.delete_user)
    delete_session = waiting(ServerCalls.delete_session)
    health = waiting(ServerCalls.health)


class WorkingMemory(_Linked[EntryCalls]):
    """A namespace's view of a palace's entries; returned by `Memory.working`."""

    set = waiting(EntryCalls.set)
    get = waiting(EntryCalls.get)
    list = waiting(EntryCalls.list)
    search = waiting(EntryCalls.search)
    delete = waiting(EntryCalls.delete)
    inventory = waiting(EntryCalls.inventory)


class ConversationMemory(_Linked[ConversationCalls]):
    """A conversation's fields; returned by `Memory.conversation`."""

    get = waiting(ConversationCalls.get)
    get_field = waiting(ConversationCalls.get_field)
    put = waiting(ConversationCalls.put)
    delete = waiting(ConversationCalls.delete)
    get_scratchpad = waiting(ConversationCalls.get_scratchpad)
    set_scratchpad = waiting(ConversationCalls.set_scratchpad)
    get_entities = waiting(ConversationCalls.get_entities)
    set_entities = waiting(ConversationCalls.set_entities)


class EpisodicMemory(_Linked[EpisodeCalls]):
    """The episodes of a palace; returned by `Memory.episodes`."""

    store = waiting(EpisodeCalls.store)
    search = waiting(EpisodeCalls.search)
    of_conversation = waiting(EpisodeCalls.of_conversation)


class _AsyncLinked(Awaits[C_co]):
    def __init__(self, link: AsyncLink, calls: C_co) -> None:
        self._link, self._calls = link, calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._calls})"

    async def _send(self, call: Call[R]) -> R:
        return await self._link.send(call)


class AsyncMemory(_AsyncLinked[ServerCalls]):
    """Memory with awaitable methods, for one event loop."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        """Arguments and errors as of Memory."""
        way = way_to(base_url, api_key, timeout_s=timeout_s, retries=retries)
        super().__init__(AsyncLink(way), ServerCalls())

    def working(self, namespace: str, *, user_id: str | None = None) -> AsyncWorkingMemory:
        """As `Memory.working`; the returned object's methods are awaitable."""
        return AsyncWorkingMemory(self._link, EntryCalls(namespace, user_id))

    def conversation(
        self, conversation_id: str, *, user_id: str | None = None
    ) -> AsyncConversationMemory:
        """As `Memory.conversation`; the returned object's methods are awaitable."""
        return AsyncConversationMemory(self._link, ConversationCalls(conversation_id, user_id))

    def episodes(self, *, user_id: str | None = None) -> AsyncEpisodicMemory:
        """As `Memory.episodes`; the returned object's methods are awaitable."""
        return AsyncEpisodicMemory(self._link, EpisodeCalls(user_id))

    async def close(self) -> None:
        """Close the connections of this memory and the objects it returned."""
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self._link.way.base_url!r})"

    add = awaiting(ServerCalls.add)
    search = awaiting(ServerCalls.search)
    get = awaiting(ServerCalls.get)
    get_all = awaiting(ServerCalls.get_all)
    update = awaiting(ServerCalls.update)
    delete = awaiting(ServerCalls.delete)
    delete_all = awaiting(ServerCalls.delete_all)
    history = awaiting(ServerCalls.history)
    reset = awaiting(ServerCalls.reset)
    entities = awaiting(ServerCalls.entities)
    relations = awaiting(ServerCalls.relations)
    timeline = awaiting(ServerCalls.timeline)

    add_turn = awaiting(ServerCalls.add_turn)
    recall = awaiting(ServerCalls.recall)
    search_messages = awaiting(ServerCalls.search_messages)
    user_memories = awaiting(ServerCalls.user_memories)
    delete_user = awaiting(ServerCalls.delete_user)
    delete_session = awaiting(ServerCalls.delete_session)
    health = awaiting(ServerCalls.health)


class AsyncWorkingMemory(_AsyncLinked[EntryCalls]):
    """WorkingMemory with awaitable methods."""

    set = awaiting(EntryCalls.set)
    get = awaiting(EntryCalls.get)
    list = awaiting(EntryCalls.list)
    search = awaiting(EntryCalls.search)
    delete = awaiting(EntryCalls.delete)
    inventory = awaiting(EntryCalls.inventory)


class AsyncConversationMemory(_AsyncLinked[ConversationCalls]):
    """ConversationMemory with awaitable methods."""

    get = awaiting(ConversationCalls.get)
    get_field = awaiting(ConversationCalls.get_field)
    put = awaiting(ConversationCalls.put)
    delete = awaiting(ConversationCalls.delete)
    get_scratchpad = awaiting(ConversationCalls.get_scratchpad)
    set_scratchpad = awaiting(ConversationCalls.set_scratchpad)
    get_entities = awaiting(ConversationCalls.get_entities)
    set_entities = awaiting(ConversationCalls.set_entities)


class AsyncEpisodicMemory(_AsyncLinked[EpisodeCalls]):
    """EpisodicMemory with awaitable methods."""

    store = awaiting(EpisodeCalls.store)
    search = awaiting(EpisodeCalls.search)
    of_conversation = awaiting(EpisodeCalls.of_conversation)

"""AsyncMemory: Memory for asyncio."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from locipalace.client.calls import Awaits, C_co, Call, awaiting
from locipalace.client.episodes import EpisodeCalls
from locipalace.client.links import RETRIES, TIMEOUT_S, AsyncLink, way_to
from locipalace.client.service import ServerCalls
from locipalace.client.working import ConversationCalls, EntryCalls

R = TypeVar("R")


class _Linked(Awaits[C_co]):
    def __init__(self, link: AsyncLink, calls: C_co) -> None:
        self._link, self._calls = link, calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._calls})"

    async def _send(self, call: Call[R]) -> R:
        return await self._link.send(call)


class AsyncMemory(_Linked[ServerCalls]):
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


class AsyncWorkingMemory(_Linked[EntryCalls]):
    """WorkingMemory with awaitable methods."""

    set = awaiting(EntryCalls.set)
    get = awaiting(EntryCalls.get)
    list = awaiting(EntryCalls.list)
    search = awaiting(EntryCalls.search)
    delete = awaiting(EntryCalls.delete)
    inventory = awaiting(EntryCalls.inventory)


class AsyncConversationMemory(_Linked[ConversationCalls]):
    """ConversationMemory with awaitable methods."""

    get = awaiting(ConversationCalls.get)
    get_field = awaiting(ConversationCalls.get_field)
    put = awaiting(ConversationCalls.put)
    delete = awaiting(ConversationCalls.delete)
    get_scratchpad = awaiting(ConversationCalls.get_scratchpad)
    set_scratchpad = awaiting(ConversationCalls.set_scratchpad)
    get_entities = awaiting(ConversationCalls.get_entities)
    set_entities = awaiting(ConversationCalls.set_entities)


class AsyncEpisodicMemory(_Linked[EpisodeCalls]):
    """EpisodicMemory with awaitable methods."""

    store = awaiting(EpisodeCalls.store)
    search = awaiting(EpisodeCalls.search)
    of_conversation = awaiting(EpisodeCalls.of_conversation)

"""AsyncMemory: Memory for asyncio."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from django.contrib.auth.models import User
from django.db import connections

from palace.sdk.configuration import Configuration
from palace.sdk.episodes import EpisodicMemory
from palace.sdk.memory import Memory
from palace.sdk.working import ConversationMemory, WorkingMemory, scope_of
from palace.storage.indexing.fact_vectors import VectorIndex
from palace.working import Namespace, name_of

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Awaiting(ABC, Generic[T]):
    """The base of async wrappers around blocking objects."""

    @abstractmethod
    def waiting(self) -> T:
        """The wrapped object; creating it may block."""


def awaited(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[Awaiting[T], P], Coroutine[Any, Any, R]]:
    """Run a call in a thread with its own database connection."""

    @wraps(method)
    async def called(standing: Awaiting[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        def call() -> R:
            try:
                return method(standing.waiting(), *args, **kwargs)
            finally:
                # The thread may never be used again and must not leave connections open.
                connections.close_all()

        return await asyncio.to_thread(call)

    return called


class AsyncMemory(Awaiting[Memory]):
    """Memory with awaitable methods. Each call has its own thread and database connection.

    Errors of Memory's constructor are raised by the first call.
    """

    def __init__(
        self,
        owner: User | str | None = None,
        *,
        vector_index: VectorIndex | None = None,
        subject: str | None = None,
    ) -> None:
        self._owner, self._vector_index, self._subject = owner, vector_index, subject
        self._config: Mapping[str, Any] | None = None
        self._memory: Memory | None = None
        self._turn = Lock()

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        *,
        owner: User | str | None = None,
        subject: str | None = None,
    ) -> Self:
        """As `Memory.from_config`; its errors are raised by the first call, but for BadInput.

        Raises:
            BadInput: an entry is unknown, not supported, or makes no sense; says which.
        """
        Configuration.read(config)
        memory = cls(owner, subject=subject)
        memory._config = config
        return memory

    def __repr__(self) -> str:
        return f"AsyncMemory(owner={self._owner!r}, subject={self._subject!r})"

    def memory(self) -> Memory:
        """The wrapped Memory, created at first use, which blocks."""
        with self._turn:
            if self._memory is None:
                self._memory = self._made()
            return self._memory

    def _made(self) -> Memory:
        if self._config is not None:
            return Memory.from_config(self._config, owner=self._owner, subject=self._subject)
        return Memory(self._owner, vector_index=self._vector_index, subject=self._subject)

    waiting = memory

    def working(self, namespace: str, *, user_id: str | None = None) -> AsyncWorkingMemory:
        """As `Memory.working`; the returned object's methods are awaitable."""
        return AsyncWorkingMemory(self, namespace, user_id)

    def conversation(
        self, conversation_id: str, *, user_id: str | None = None
    ) -> AsyncConversationMemory:
        """As `Memory.conversation`; the returned object's methods are awaitable."""
        return AsyncConversationMemory(self, conversation_id, user_id)

    def episodes(self, *, user_id: str | None = None) -> AsyncEpisodicMemory:
        """As `Memory.episodes`; the returned object's methods are awaitable."""
        return AsyncEpisodicMemory(self, user_id)

    add = awaited(Memory.add)
    search = awaited(Memory.search)
    get = awaited(Memory.get)
    get_all = awaited(Memory.get_all)
    update = awaited(Memory.update)
    delete = awaited(Memory.delete)
    delete_all = awaited(Memory.delete_all)
    history = awaited(Memory.history)
    reset = awaited(Memory.reset)


class AsyncWorkingMemory(Awaiting[WorkingMemory]):
    """WorkingMemory with awaitable methods."""

    def __init__(self, memory: AsyncMemory, namespace: str, user_id: str | None) -> None:
        scope_of(user_id)  # Validate at once.
        self.namespace = Namespace.read(namespace)
        self._memory, self._user_id = memory, user_id

    def __repr__(self) -> str:
        return f"AsyncWorkingMemory({str(self.namespace)!r}, user_id={self._user_id!r})"

    def waiting(self) -> WorkingMemory:
        return self._memory.memory().working(str(self.namespace), user_id=self._user_id)

    set = awaited(WorkingMemory.set)
    get = awaited(WorkingMemory.get)
    list = awaited(WorkingMemory.list)
    search = awaited(WorkingMemory.search)
    delete = awaited(WorkingMemory.delete)
    inventory = awaited(WorkingMemory.inventory)


class AsyncConversationMemory(Awaiting[ConversationMemory]):
    """ConversationMemory with awaitable methods."""

    def __init__(self, memory: AsyncMemory, conversation_id: str, user_id: str | None) -> None:
        scope_of(user_id)
        self.conversation_id = name_of("A conversation", conversation_id)
        self._memory, self._user_id = memory, user_id

    def __repr__(self) -> str:
        return f"AsyncConversationMemory({self.conversation_id!r}, user_id={self._user_id!r})"

    def waiting(self) -> ConversationMemory:
        return self._memory.memory().conversation(self.conversation_id, user_id=self._user_id)

    get = awaited(ConversationMemory.get)
    get_field = awaited(ConversationMemory.get_field)
    put = awaited(ConversationMemory.put)
    delete = awaited(ConversationMemory.delete)
    get_scratchpad = awaited(ConversationMemory.get_scratchpad)
    set_scratchpad = awaited(ConversationMemory.set_scratchpad)
    get_entities = awaited(ConversationMemory.get_entities)
    set_entities = awaited(ConversationMemory.set_entities)


class AsyncEpisodicMemory(Awaiting[EpisodicMemory]):
    """EpisodicMemory with awaitable methods."""

    def __init__(self, memory: AsyncMemory, user_id: str | None) -> None:
        scope_of(user_id)
        self._memory, self._user_id = memory, user_id

    def __repr__(self) -> str:
        return f"AsyncEpisodicMemory(user_id={self._user_id!r})"

    def waiting(self) -> EpisodicMemory:
        return self._memory.memory().episodes(user_id=self._user_id)

    store = awaited(EpisodicMemory.store)
    search = awaited(EpisodicMemory.search)
    of_conversation = awaited(EpisodicMemory.of_conversation)

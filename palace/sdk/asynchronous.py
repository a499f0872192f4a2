"""AsyncMemory: Memory for asyncio. The same code, in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.contrib.auth.models import User
from django.db import connections

from palace.indexing.vector_index import VectorIndex
from palace.sdk.memory import Memory

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    method: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, R]]:
    @wraps(method)
    async def awaited(memory: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        def call() -> R:
            try:
                return method(memory.memory(), *args, **kwargs)
            finally:
                # The thread may never be used again; its connections must not stay behind.
                connections.close_all()

        return await asyncio.to_thread(call)

    return awaited


class AsyncMemory:
    """As Memory, its methods awaited. Each call has a thread and a database connection of its own.

    What Memory's constructor raises, the first call does.
    """

    def __init__(
        self, owner: User | str | None = None, *, vector_index: VectorIndex | None = None
    ) -> None:
        self._owner, self._vector_index = owner, vector_index
        self._memory: Memory | None = None
        self._turn = Lock()

    def memory(self) -> Memory:
        """The one that does the work; made on first use, which takes a while: not in coroutines."""
        with self._turn:
            if self._memory is None:
                self._memory = Memory(self._owner, vector_index=self._vector_index)
            return self._memory

    add = _awaited(Memory.add)
    search = _awaited(Memory.search)
    get = _awaited(Memory.get)
    get_all = _awaited(Memory.get_all)
    update = _awaited(Memory.update)
    delete = _awaited(Memory.delete)
    delete_all = _awaited(Memory.delete_all)
    history = _awaited(Memory.history)
    reset = _awaited(Memory.reset)

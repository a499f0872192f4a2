"""Run blocking calls in threads, to make them awaitable."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from django.db import connections

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

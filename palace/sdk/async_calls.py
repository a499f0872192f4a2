"""Calls that wait, made into ones that are awaited: the same code, in threads."""

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
    """Stands for something whose calls wait."""

    @abstractmethod
    def waiting(self) -> T:
        """The one that does the work; to make it may take a while: not in coroutines."""


def awaited(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[Awaiting[T], P], Coroutine[Any, Any, R]]:
    """Each call has a thread and a database connection of its own."""

    @wraps(method)
    async def called(standing: Awaiting[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        def call() -> R:
            try:
                return method(standing.waiting(), *args, **kwargs)
            finally:
                # The thread may never be used again; its connections must not stay behind.
                connections.close_all()

        return await asyncio.to_thread(call)

    return called

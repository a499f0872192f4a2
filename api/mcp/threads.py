"""What waits, done in threads: the event loop serves everybody else meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

from isolation import reach

T = TypeVar("T")

# Each holds a connection to the database while it is at work. Who comes when all are waits a turn.
_threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="mcp")


async def in_thread(call: Callable[[], T]) -> T:
    """What the call returns or raises; its database connections are closed behind it."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _alone, call)


def _alone(call: Callable[[], T]) -> T:
    try:
        with reach.nobody():
            return call()
    finally:
        # The thread may rest for long; its connections must not stay behind.
        connections.close_all()


def finish() -> None:
    """Wait for what was begun and is awaited by nobody any more; nothing is begun after it."""
    _threads.shutdown()

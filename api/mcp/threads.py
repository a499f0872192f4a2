"""A thread pool for blocking calls, so that they do not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

from isolation import reach

T = TypeVar("T")

# Each busy thread uses a database connection; further calls queue.
_threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="mcp")


async def in_thread(call: Callable[[], T]) -> T:
    """Run the call in a thread and return its result; close its database connections after."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _run_and_close, call)


def _run_and_close(call: Callable[[], T]) -> T:
    try:
        with reach.nobody():
            return call()
    finally:
        # The thread may stay idle for long and must not keep connections open.
        connections.close_all()


def finish() -> None:
    """Finish running calls and refuse new ones."""
    _threads.shutdown()

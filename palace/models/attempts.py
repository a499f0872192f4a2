"""Attempts at unfinished work: a lock shows that one runs, its outcome when the next is due.

A killed process leaves neither, so its work is taken up again in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from celery import Task
from kombu.exceptions import OperationalError
from redis import RedisError

from palace.models.locks import held_if_free, is_held
from settings_app import task_queue


@contextmanager
def attempt(kind: str, key: int) -> Iterator[None]:
    """Work on an item in the block. Another process may do the same, and sees to its own safety."""
    with held_if_free(_lock_name(kind, key)), task_queue.outcome(kind, key):
        yield


def due_in(queue: str, kind: str) -> Callable[[int], bool]:
    """A test whether an item of this kind is to be queued there now.

    Raises:
        RedisError: Redis is away.
    """
    begun = task_queue.begun_until(queue)

    def is_due(key: int) -> bool:
        is_running = partial(is_held, _lock_name(kind, key))
        return task_queue.is_due(kind, key, begun, is_running=is_running)

    return is_due


def enqueue_once(task: Task[Any, Any], palace_id: int, queue: str) -> None:
    """Queue a task that does all there is to do in a palace, unless it waits there already.

    Raises:
        OperationalError, RedisError: The queue is away.
    """
    if not task_queue.claim_place(task.name, palace_id, queue):
        return
    try:
        task.apply_async((palace_id,), queue=queue)
    except (OperationalError, RedisError):
        # It waits nowhere: the next one must not be held off.
        task_queue.release_place(task.name, palace_id)
        raise


def _lock_name(kind: str, key: int) -> str:
    return f"attempt {kind} {key}"

"""Advisory locks by name, and attempts at unfinished work, which hold one.

Locks are in the database and end with the session of their holder. Each schema has its own names:
room 7 of a benchmark is not room 7 of the user.

An attempt's lock shows that it runs, its outcome when the next is due. A killed process leaves
neither, so its work is taken up again in seconds. Tasks queued by a sweep are not re-queued at once
when their process dies: a task that kills its process, for example by using too much memory, would
do so again and again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from celery import Task, shared_task
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, connection, models
from kombu.exceptions import OperationalError
from redis import RedisError

from isolation import row_access
from settings_app import task_queue
from settings_app.task_queue import BULK, QUEUE

logger = logging.getLogger(__name__)

_KEY = "hashtextextended(current_schema() || ' ' || %s, 0)"
_NAMES = "unnest(%s::text[]) AS name"
# pg_locks shows the key of an advisory lock in two halves.
_IS_HELD = f"""
    SELECT EXISTS (
        SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::bigint << 32 | objid::bigint) = {_KEY}
    )
"""  # noqa: S608 - put together from constants.


@contextmanager
def held_if_free(name: str) -> Iterator[bool]:
    """Hold the lock during the block; yields False at once if it is taken."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_KEY})", [name])
        ours = cursor.fetchone() == (True,)
        session = connection.connection
    try:
        yield ours
    finally:
        # If the session has ended meanwhile, so has the lock.
        if ours and connection.connection is session:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_advisory_unlock({_KEY})", [name])


@contextmanager
def held_where_free(names: Collection[str]) -> Iterator[list[str]]:
    """Hold all free locks of these during the block; yields their names."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT name, pg_try_advisory_lock({_KEY % 'name'}) FROM {_NAMES}",  # noqa: S608
            [list(names)],
        )
        ours = [name for name, is_ours in cursor.fetchall() if is_ours]
        session = connection.connection
    try:
        yield ours
    finally:
        # If the session has ended meanwhile, so have the locks.
        if ours and connection.connection is session:
            with connection.cursor() as cursor:
                cursor.execute(
                    f"SELECT pg_advisory_unlock({_KEY % 'name'}) FROM {_NAMES}",  # noqa: S608
                    [ours],
                )


def is_held(name: str) -> bool:
    """Whether the lock is taken right now; does not take it."""
    with connection.cursor() as cursor:
        cursor.execute(_IS_HELD, [name])
        (is_held,) = cursor.fetchone()
    return bool(is_held)


def hold_until_commit(name: str) -> None:
    """Wait for the lock and keep it until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({_KEY})", [name])


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


def enqueue_once(task: Task[Any, Any], palace_id: int, *, with_long: bool = False) -> None:
    """Queue a task that does all there is to do in a palace, unless it waits there already.

    It calls `leave_queue` before it looks for work.

    Args:
        with_long: Queue it with the long tasks.

    Raises:
        OperationalError, RedisError: The queue is away.
    """
    queue = BULK if with_long else QUEUE
    if not task_queue.claim_place(task.name, palace_id, queue):
        return
    try:
        task.apply_async((palace_id,), queue=queue)
    except (OperationalError, RedisError):
        # It waits nowhere: the next one must not be held off.
        leave_queue(task, palace_id)
        raise


def leave_queue(task: Task[Any, Any], palace_id: int) -> None:
    """The task has begun, and what is stored after this needs another."""
    task_queue.release_place(task.name, palace_id)


def is_among_short(task: Task[Any, Any]) -> bool:
    """Whether the running task was queued with the short ones."""
    # Of a task that was not queued there is no such information.
    return (task.request.delivery_info or {}).get("routing_key") == QUEUE


@contextmanager
def queue_may_be_away() -> Iterator[None]:
    """Log that the queue is unavailable: the data is stored, and the sweep finds it in minutes."""
    try:
        yield
    except (OperationalError, RedisError) as error:
        logger.warning("The queue is unavailable; the periodic tasks will do the rest: %s", error)


@contextmanager
def unless_gone(row: models.QuerySet[Any]) -> Iterator[None]:
    """End the task without an error if its row was deleted meanwhile."""
    try:
        yield
    except (IntegrityError, ObjectDoesNotExist):
        if row.exists():
            raise
        logger.info("A task ended early: its row was deleted meanwhile.")


def sweep_task(
    name: str, sees: str, *, expires: float | None = None, reject_on_worker_lost: bool = True
) -> Callable[[Callable[[], None]], Task[[], None]]:
    """A task that works on all palaces.

    Args:
        sees: Its reason in `isolation.row_access.SWEEPS`.
        expires: After so many seconds in the queue it is dropped.
        reject_on_worker_lost: Whether it is queued again at once when its process dies.
    """
    as_task = shared_task(name=name, expires=expires, reject_on_worker_lost=reject_on_worker_lost)

    def swept(run: Callable[[], None]) -> Task[[], None]:
        return as_task(row_access.sweep(sees)(run))

    return swept


def _lock_name(kind: str, key: int) -> str:
    return f"attempt {kind} {key}"

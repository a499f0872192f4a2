"""Redis: the client, the names of a palace's keys, their deletion with the palace, and backoff.

A deleted palace leaves no reference to its keys. If Redis is down then, or a writer is late, a
daily task finds them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import islice
from typing import Any
from uuid import UUID

import redis
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models.signals import post_delete

from palace.errors import WorkingMemoryAway
from palace.models import Palace
from settings_app.background_work import BULK, QUEUE

logger = logging.getLogger(__name__)

ANY_UUID = "-".join("?" * length for length in (8, 4, 4, 4, 12))
# Keys deleted at once.
BATCH = 500
LONGEST_S = 6 * 3600
# What is not begun within this time is taken for lost, and may be queued again.
WAITS_AT_MOST_S = 600


@contextmanager
def answering() -> Iterator[redis.Redis]:
    """A Redis client that decodes text; translates its errors.

    Raises:
        WorkingMemoryAway: Redis does not respond, or is full.
    """
    try:
        yield _client(settings.REDIS_URL)
    except redis.RedisError as error:
        logger.warning("Working memory is unavailable: Redis does not respond (%s).", error)
        raise WorkingMemoryAway from error


def key(palace: Palace, kind: str, name: str = "") -> str:
    """The key, unique by palace, kind and name: a kind has no colon."""
    return f"{palace.uuid}:{kind}:{name}"


def now_ms(client: redis.Redis) -> int:
    """The time by Redis's clock, which determines expiry."""
    seconds, micros = client.time()
    return seconds * 1000 + micros // 1000


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=settings.REDIS_TIMEOUT_S)


def forget_with_palaces() -> None:
    """Connect the deletion of keys to the deletion of palaces."""
    post_delete.connect(_palace_deleted, sender=Palace, dispatch_uid="working memory")


def forget_palace(palace_uuid: UUID) -> None:
    """
    Raises:
        WorkingMemoryAway: Redis does not respond; some keys may be left.
    """
    with answering() as client:
        for names in _batches(client, f"{palace_uuid}:*"):
            client.unlink(*names)


def forget_every_palace() -> None:
    """Delete the keys of all palaces: after a restore they belong to another time.

    Raises:
        WorkingMemoryAway: Redis does not respond; some keys may be left.
    """
    with answering() as client:
        for names in _batches(client, f"{ANY_UUID}:*"):
            client.unlink(*names)


def forget_deleted_palaces() -> int:
    """Delete the keys of deleted palaces; returns their number.

    Raises:
        WorkingMemoryAway: Redis does not respond; some keys may be left.
    """
    gone = 0
    with answering() as client:
        for names in _batches(client, f"{ANY_UUID}:*"):
            by_palace = {name: found for name in names if (found := _palace_of(name))}
            there = set(
                Palace.objects.filter(uuid__in=set(by_palace.values())).values_list(
                    "uuid", flat=True
                )
            )
            left = [name for name, palace in by_palace.items() if palace not in there]
            gone += len(left)
            if left:
                client.unlink(*left)
    return gone


def _palace_deleted(instance: Palace, **_: Any) -> None:
    transaction.on_commit(partial(_forget_or_leave, instance.uuid))


def _forget_or_leave(palace_uuid: UUID) -> None:
    try:
        forget_palace(palace_uuid)
    except WorkingMemoryAway:
        logger.warning("The working memory of a deleted palace is left to the daily task.")


def _batches(client: redis.Redis, pattern: str) -> Iterator[list[str]]:
    names = client.scan_iter(match=pattern, count=BATCH)
    while batch := list(islice(names, BATCH)):
        yield batch


def _palace_of(name: str) -> UUID | None:
    try:
        return UUID(name.partition(":")[0])
    except ValueError:
        return None


def is_due(kind: str, key: int) -> bool:
    """Whether to queue this work item now; if so, it is not due again for an interval.

    The interval doubles each time until `done`. So items that always fail do not block others,
    and items in a long queue are not queued repeatedly.
    """
    waiting, tried = _names(kind, key)
    times = cache.get(tried, 0)
    # Bounds the power; the result is capped anyway.
    seconds = min(settings.TAKE_UP_AFTER_S * 2 ** min(times, 16), LONGEST_S)
    if not cache.add(waiting, 1, timeout=seconds):
        return False
    cache.set(tried, times + 1, timeout=2 * LONGEST_S)
    return True


def done(kind: str, key: int) -> None:
    """Reset the backoff after success: the item is due at once next time."""
    cache.delete_many(_names(kind, key))


def may_wait(task: str, key: int, queue: str) -> bool:
    """Whether to queue a task that does all there is to do: False while one of that key waits.

    The task calls `begin` before it looks for work, so what comes later is queued again.
    """
    return cache.add(_waits(task, key, queue), 1, timeout=WAITS_AT_MOST_S)


def begin(task: str, key: int) -> None:
    """From now on it may be queued again: it may not see what is stored after this."""
    with suppress(redis.RedisError):
        cache.delete_many([_waits(task, key, queue) for queue in (QUEUE, BULK)])


def _waits(task: str, key: int, queue: str) -> str:
    return f"waits:{queue}:{task}:{key}"


def _names(kind: str, key: int) -> tuple[str, str]:
    return f"take-up-{kind}-{key}-waiting", f"take-up-{kind}-{key}-tried"

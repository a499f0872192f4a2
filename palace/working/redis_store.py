"""Redis: the client, the names of a palace's keys, and their deletion with the palace.

A deleted palace leaves no reference to its keys. If Redis is down then, or a writer is late, a
daily task finds them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from typing import Any
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_delete

from language.errors import WorkingMemoryAway
from palace.models import Palace

logger = logging.getLogger(__name__)

ANY_UUID = "-".join("?" * length for length in (8, 4, 4, 4, 12))
# Keys deleted at once.
BATCH = 500


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

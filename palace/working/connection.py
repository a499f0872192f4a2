"""The Redis connection pool, one per process, and the palace's key names."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import redis
from django.conf import settings

from palace.models import Palace
from palace.working.errors import WorkingMemoryAway

logger = logging.getLogger(__name__)

# Seconds for one Redis call.
TIMEOUT_S = 3


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
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=TIMEOUT_S)

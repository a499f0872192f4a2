"""The way to Redis: one connection pool a process, keys that begin with the palace."""

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

# Of one question to Redis.
TIMEOUT_S = 3


@contextmanager
def answering() -> Iterator[redis.Redis]:
    """Redis, for what is asked within; texts come back as text.

    Raises:
        WorkingMemoryAway: it does not answer, or has no room left.
    """
    try:
        yield _client(settings.REDIS_URL)
    except redis.RedisError as error:
        logger.warning("Working memory cannot be used: Redis does not answer (%s).", error)
        raise WorkingMemoryAway from error


def key(palace: Palace, kind: str, name: str = "") -> str:
    """No two palaces, kinds or names share one: a kind has no colon."""
    return f"{palace.uuid}:{kind}:{name}"


def now_ms(client: redis.Redis) -> int:
    """By Redis's clock, which is what times are measured by."""
    seconds, micros = client.time()
    return seconds * 1000 + micros // 1000


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=TIMEOUT_S)

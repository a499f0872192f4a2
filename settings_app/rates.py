"""How many requests a key may send: counted in Redis, for all processes together."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import cast

import redis
from django.conf import settings
from limits import RateLimitItem, parse
from limits.storage import Storage, storage_from_string
from limits.strategies import MovingWindowRateLimiter

from settings_app.api_keys import ApiKey

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rate:
    """Where a key stands.

    Attributes:
        allowed: Whether this request may go on.
        limit: Requests in a window; `remaining` of them are left.
        reset_s: Until the oldest one that counts does so no more; in seconds, at least 1.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_s: int

    def headers(self) -> dict[str, str]:
        """RateLimit header fields as draft-ietf-httpapi-ratelimit-headers-06 has them."""
        headers = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }
        return headers if self.allowed else {**headers, "Retry-After": str(self.reset_s)}


def count(key: ApiKey) -> Rate | None:
    """Count a request; None where there is no limit, or Redis is away and nobody counts."""
    limit = allowance()
    if limit is None:
        return None
    limiter, name = MovingWindowRateLimiter(_storage()), str(key.uuid)
    try:
        allowed = limiter.hit(limit, name)
        reset, remaining = limiter.get_window_stats(limit, name)
    except redis.RedisError as error:
        logger.warning("Requests are not counted, because Redis is away: %s", error)
        return None
    return Rate(allowed, limit.amount, remaining, max(math.ceil(reset - time.time()), 1))


def forget(keys: Iterable[ApiKey]) -> None:
    """Count no more for these; where Redis is away it goes by itself within the window."""
    limit = allowance()
    if limit is None:
        return
    try:
        for key in keys:
            MovingWindowRateLimiter(_storage()).clear(limit, str(key.uuid))
    except redis.RedisError as error:
        logger.warning("Counts of requests are left, because Redis is away: %s", error)


def allowance() -> RateLimitItem | None:
    return parse(settings.API_RATE) if settings.API_RATE else None


@cache
def _storage() -> Storage:
    # `limits` spells Redis over a socket in its own way.
    url = settings.REDIS_URL.replace("unix://", "redis+unix://", 1)
    return cast(Storage, storage_from_string(url))

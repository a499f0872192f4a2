"""Limits: how often a password may be guessed, and how many requests a key may send.

Attempts to sign in are counted in the cache, in one atomic step and before the password is
checked: of a hundred guesses at the same moment, ten are answered. Requests by key are counted in
Redis, for all processes together.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import math
import re
import time
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import redis
from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from limits import RateLimitItem, parse
from limits.storage import Storage, storage_from_string
from limits.strategies import MovingWindowRateLimiter

from settings_app.api_keys import ApiKey

MOST_ATTEMPTS = 10
REST = timedelta(minutes=15)
REST_S = int(REST.total_seconds())

_SALT = "settings_app.attempts"
# Of IPv6 a single customer is given at least this many addresses: they count as one.
_IPV6_PREFIX = 64
_WITH_PORT = re.compile(r"\A(\[[^]]*\]|[0-9.]+):[0-9]+\Z")

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


def count_request(key: ApiKey) -> Rate | None:
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


def forget_requests(keys: Iterable[ApiKey]) -> None:
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


@functools.cache
def _storage() -> Storage:
    # `limits` spells Redis over a socket in its own way.
    url = settings.REDIS_URL.replace("unix://", "redis+unix://", 1)
    return cast(Storage, storage_from_string(url))


class TooManyAttempts(Exception):
    """The message says when to try again."""

    def __init__(self) -> None:
        minutes = REST_S // 60
        super().__init__(
            f"There were {MOST_ATTEMPTS} wrong attempts. Wait {minutes} minutes, then try again."
        )


def count_attempt(request: HttpRequest, name: str) -> None:
    """Count an attempt to sign in as `name`, before it is known whether the password is right.

    Raises:
        TooManyAttempts: this one must not be answered, be it right or wrong.
    """
    key = _key(request, name)
    number = _one_more(key)
    if number > MOST_ATTEMPTS:
        if number == MOST_ATTEMPTS + 1:
            # Without the name: people type their password there, too.
            logger.warning("No more sign-ins for a name from %s for a while.", place_of(request))
        raise TooManyAttempts
    # The rest begins with the last attempt that is answered; those refused do not lengthen it.
    cache.touch(key, REST_S)


def forget_attempts(request: HttpRequest, name: str) -> None:
    """Password correct: reset the counter."""
    cache.delete(_key(request, name))


def place_of(request: HttpRequest) -> str:
    """Where a request comes from: an IPv4 address, or an IPv6 network.

    What a proxy says of it is believed only where one is set up (LOCI_HTTPS), and of that only
    the last entry, which is the proxy's own: those before it are the sender's to choose.
    """
    said = ""
    if settings.SECURE_PROXY_SSL_HEADER:
        said = request.headers.get("X-Forwarded-For", "").rsplit(",", 1)[-1]
    peer = request.META.get("REMOTE_ADDR", "")
    return _network(said) or _network(peer) or peer


def _network(address: str) -> str:
    """Empty where it is no address; some proxies write the port behind it."""
    address = _WITH_PORT.sub(r"\1", address.strip())
    try:
        parsed = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))


def _one_more(key: str) -> int:
    while True:
        cache.add(key, 0, timeout=REST_S)
        with suppress(ValueError):  # It ran out just now.
            return int(cache.incr(key))


def _key(request: HttpRequest, name: str) -> str:
    """The same for every way to write a name; neither it nor the place can be read from it."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip()
    hashed = salted_hmac(_SALT, f"{place_of(request)}|{folded}", algorithm="sha256")
    return f"attempts:{hashed.hexdigest()}"

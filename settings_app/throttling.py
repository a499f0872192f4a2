"""Rate limits: attempts to sign in, new accounts, and the requests of a key.

Attempts to sign in are counted in the cache, in one atomic step and before the password is
checked: of a hundred guesses at the same moment, ten are answered. They count for the pair of name
and address, for the address, and for the name; of the last two, only wrong ones. Requests by key
are counted in Redis, for all processes together; while Redis is away, each process counts its own.
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
from limits import RateLimitItem, parse_many
from limits.storage import MemoryStorage, Storage, storage_from_string
from limits.strategies import MovingWindowRateLimiter

from settings_app.api_keys import ApiKey

# For a name from an address.
MOST_ATTEMPTS = 10
# Wrong ones within REST: from an address for any name, and for a name from any address.
MOST_FROM_PLACE = 50
MOST_FOR_NAME = 50
REST = timedelta(minutes=15)
REST_S = int(REST.total_seconds())
# After a right password, wrong ones from elsewhere do not keep a name out of this address.
FAMILIAR_FOR_S = 30 * 24 * 3600
MOST_FAMILIAR = 20
# Codes of the second step, right or wrong, for an account.
MOST_CODES = 10
# Forms to make an account, from an address.
MOST_SIGN_UPS = 30
SIGN_UP_REST_S = 3600
# Apps that register themselves, from an address.
MOST_REGISTRATIONS = 30
REGISTRATION_REST_S = 3600

# A request counts as one, and one more for each of these.
BYTES_A_UNIT = 256 << 10
TOKENS_A_UNIT = 4_000
RESULTS_A_UNIT = 100
# The assumed length of a body that does not declare it.
UNDECLARED_BYTES = 1 << 20

_SALT = "settings_app.attempts"
# The IPv6 network of one customer, whose addresses count as one.
_IPV6_PREFIX = 64
_WITH_PORT = re.compile(r"\A(\[[^]]*\]|[0-9.]+):[0-9]+\Z")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rate:
    """The state of a key's rate limit.

    Attributes:
        allowed: Whether this request may go on.
        limit: Requests in a window; `remaining` of them are left.
        reset_s: Seconds until the oldest counted request expires, at least 1.
        window_s: The window's length, in seconds.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_s: int
    window_s: int

    def headers(self) -> dict[str, str]:
        """RateLimit header fields as draft-ietf-httpapi-ratelimit-headers-06 has them."""
        headers = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }
        return headers if self.allowed else {**headers, "Retry-After": str(self.reset_s)}


def cost_of(*, size: int = 0, tokens: int = 0, results: int = 0) -> int:
    """How many requests a request counts for.

    Args:
        size: Of the body, in bytes.
        tokens: The budget of the context.
        results: How many are asked for.
    """
    more = size // BYTES_A_UNIT + tokens // TOKENS_A_UNIT + max(results - 1, 0) // RESULTS_A_UNIT
    return 1 + more


def cost_of_body(request: HttpRequest) -> int:
    """How many requests a request counts for, by its size."""
    declared = request.META.get("CONTENT_LENGTH") or "0"
    is_known = "HTTP_TRANSFER_ENCODING" not in request.META and declared.isdecimal()
    return cost_of(size=int(declared) if is_known else UNDECLARED_BYTES)


def count_request(key: ApiKey, cost: int = 1) -> Rate | None:
    """Count a request; None without a limit.

    What costs more than a window allows counts as a whole window, so that it can be sent at all.
    While Redis is away, or refuses to write, this process counts by itself.
    """
    windows = allowance()
    if not windows:
        return None
    name = str(key.uuid)
    try:
        return _counted(_storage(), windows, name, cost)
    except redis.RedisError as error:
        logger.warning("Each process counts requests by itself; Redis does not count: %s", error)
        return _counted(_own_storage(), windows, name, cost)


def _counted(storage: Storage, windows: list[RateLimitItem], name: str, cost: int) -> Rate:
    """Count in all windows, or in none; the rate is that of the window with the least left."""
    limiter = MovingWindowRateLimiter(storage)
    costs = [(window, min(cost, window.amount)) for window in windows]
    full = [window for window, due in costs if not limiter.test(window, name, cost=due)]
    # Others may count between the test and this.
    full = full or [window for window, due in costs if not limiter.hit(window, name, cost=due)]
    rates = [_rate(limiter, window, name, allowed=not full) for window in full or windows]
    if full:
        return max(rates, key=lambda rate: rate.reset_s)
    return min(rates, key=lambda rate: rate.remaining)


def _rate(
    limiter: MovingWindowRateLimiter, window: RateLimitItem, name: str, *, allowed: bool
) -> Rate:
    reset, remaining = limiter.get_window_stats(window, name)
    reset_s = max(math.ceil(reset - time.time()), 1)
    return Rate(allowed, window.amount, remaining, reset_s, window.get_expiry())


def forget_requests(keys: Iterable[ApiKey]) -> None:
    """Reset the counters of these; if Redis is away, they expire within the window."""
    windows = allowance()
    try:
        for key in keys:
            for window in windows:
                MovingWindowRateLimiter(_own_storage()).clear(window, str(key.uuid))
                MovingWindowRateLimiter(_storage()).clear(window, str(key.uuid))
    except redis.RedisError as error:
        logger.warning("Counts of requests are left, because Redis is away: %s", error)


def allowance() -> list[RateLimitItem]:
    """The limits of a key, one for each window; empty for none."""
    return parse_many(settings.API_RATE) if settings.API_RATE else []


@functools.cache
def _storage() -> Storage:
    # `limits` spells Redis over a socket in its own way.
    url = settings.REDIS_URL.replace("unix://", "redis+unix://", 1)
    return cast(Storage, storage_from_string(url, socket_timeout=settings.REDIS_TIMEOUT_S))


@functools.cache
def _own_storage() -> Storage:
    return MemoryStorage()


class TooManyAttempts(Exception):
    """The message says when to try again.

    Attributes:
        rest_s: Seconds until the next attempt is allowed, at the latest.
    """

    def __init__(self, most: int, what: str = "wrong attempts", rest_s: int = REST_S) -> None:
        super().__init__(f"There were {most} {what}. Wait {rest_s // 60} minutes, then try again.")
        self.rest_s = rest_s


def count_attempt(request: HttpRequest, name: str) -> None:
    """Count an attempt to sign in as `name`, before the password is checked.

    Raises:
        TooManyAttempts: this one must not be checked.
    """
    pair = _key(request, name)
    # In this order, so that an attempt refused for one reason is not counted for the next.
    _count(request, pair, MOST_ATTEMPTS)
    _count(request, _place_key(request), MOST_FROM_PLACE)
    if not _is_familiar(request, name):
        _count(request, _name_key(name), MOST_FOR_NAME)
    # The pause begins with the last checked attempt; refused ones do not lengthen it.
    cache.touch(pair, REST_S)


def _count(request: HttpRequest, key: str, most: int) -> None:
    number = _one_more(key, REST_S)
    if number > most:
        if number == most + 1:
            # Without the name: people type their password there, too.
            logger.warning("No more sign-ins for a name from %s for a while.", place_of(request))
        raise TooManyAttempts(most)


def forget_attempts(request: HttpRequest, name: str) -> None:
    """Password correct: reset the pair's counter, and take this attempt off the other two.

    Those are not reset: who has an account of their own could reset their address's count with it.
    """
    cache.delete(_key(request, name))
    _one_less(_place_key(request))
    if not _is_familiar(request, name):
        _one_less(_name_key(name))
    places = [place for place in _familiar_places(name) if place != _place_key(request)]
    latest = [*places, _place_key(request)][-MOST_FAMILIAR:]
    cache.set(_familiar_key(name), latest, FAMILIAR_FOR_S)


def forget_name(name: str) -> None:
    """Forget this name; counters of its pairs with addresses expire."""
    try:
        cache.delete_many([_name_key(name), _familiar_key(name)])
    except redis.RedisError as error:
        logger.warning("Where a name signed in is left, because Redis is away: %s", error)


def count_code(user_id: int) -> None:
    """Count a code of the second step, before checking it.

    For the account, from any address: anybody who types codes knows its password.

    Raises:
        TooManyAttempts: this one must not be checked.
    """
    if _one_more(_code_key(user_id), REST_S) > MOST_CODES:
        raise TooManyAttempts(MOST_CODES, "codes")


def forget_codes(user_id: int) -> None:
    """Reset the counter after a correct code."""
    cache.delete(_code_key(user_id))


def _code_key(user_id: int) -> str:
    return _sealed(f"code|{user_id}")


def count_sign_up(request: HttpRequest) -> None:
    """Count a form to make an account.

    Raises:
        TooManyAttempts: this one must not be read.
    """
    if _one_more(f"{_place_key(request)}:sign-up", SIGN_UP_REST_S) > MOST_SIGN_UPS:
        raise TooManyAttempts(MOST_SIGN_UPS, "attempts to make an account", SIGN_UP_REST_S)


def count_registration(request: HttpRequest) -> None:
    """Count an app that registers itself.

    Raises:
        TooManyAttempts: this one must not be registered.
    """
    if _one_more(f"{_place_key(request)}:registration", REGISTRATION_REST_S) > MOST_REGISTRATIONS:
        raise TooManyAttempts(MOST_REGISTRATIONS, "apps registered", REGISTRATION_REST_S)


def place_of(request: HttpRequest) -> str:
    """Where a request comes from: an IPv4 address, or an IPv6 network.

    A proxy's header counts only if a proxy is configured (LOCI_HTTPS), and only its last entry,
    which the proxy has written: the sender can forge the others.
    """
    said = ""
    if settings.SECURE_PROXY_SSL_HEADER:
        said = request.headers.get("X-Forwarded-For", "").rsplit(",", 1)[-1]
    peer = request.META.get("REMOTE_ADDR", "")
    return _network(said) or _network(peer) or peer


def _network(address: str) -> str:
    """The network of an address, with or without a port; empty if it is invalid."""
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


def _one_more(key: str, lasts_s: int) -> int:
    while True:
        cache.add(key, 0, timeout=lasts_s)
        with suppress(ValueError):  # It ran out just now.
            return int(cache.incr(key))


def _one_less(key: str) -> None:
    with suppress(ValueError):  # It ran out just now.
        if cache.decr(key) <= 0:
            cache.delete(key)


def _is_familiar(request: HttpRequest, name: str) -> bool:
    """Whether this name has signed in from this address within the last weeks."""
    return _place_key(request) in _familiar_places(name)


def _familiar_places(name: str) -> list[str]:
    places: list[str] = cache.get(_familiar_key(name)) or []
    return places


def _familiar_key(name: str) -> str:
    return f"{_name_key(name)}:familiar"


def _key(request: HttpRequest, name: str) -> str:
    return _sealed(f"{place_of(request)}|{_folded(name)}")


def _name_key(name: str) -> str:
    return _sealed(f"name|{_folded(name)}")


def _place_key(request: HttpRequest) -> str:
    return _sealed(f"place|{place_of(request)}")


def _folded(name: str) -> str:
    """The name, normalised: the same for every spelling."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _sealed(text: str) -> str:
    """A keyed digest, so that no name or address is stored."""
    hashed = salted_hmac(_SALT, text, algorithm="sha256")
    return f"attempts:{hashed.hexdigest()}"

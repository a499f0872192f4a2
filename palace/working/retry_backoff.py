"""When work is queued: once while it waits, and if it fails with a backoff, capped at 6 h."""

from __future__ import annotations

from contextlib import suppress

import redis
from django.conf import settings
from django.core.cache import cache

from settings_app.background_work import BULK, QUEUE

LONGEST_S = 6 * 3600
# What is not begun within this time is taken for lost, and may be queued again.
WAITS_AT_MOST_S = 600


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
    """Whether to queue a task, because none of that name and key waits there."""
    return cache.add(_waits(task, key, queue), 1, timeout=WAITS_AT_MOST_S)


def begin(task: str, key: int) -> None:
    """From now on it may be queued again: it may not see what is stored after this."""
    with suppress(redis.RedisError):
        cache.delete_many([_waits(task, key, queue) for queue in (QUEUE, BULK)])


def _waits(task: str, key: int, queue: str) -> str:
    return f"waits:{queue}:{task}:{key}"


def _names(kind: str, key: int) -> tuple[str, str]:
    return f"take-up-{kind}-{key}-waiting", f"take-up-{kind}-{key}-tried"

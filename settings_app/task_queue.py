"""When to queue a task: left work is found, failing work is retried with backoff, and work that
waits is not queued twice.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import redis
from django.conf import settings
from django.core.cache import cache
from django.db.models import Q
from django.utils import timezone

from settings_app.background_work import BULK, QUEUE

LONGEST_BACKOFF_S = 6 * 3600
# A task that does not begin within this time is assumed lost, and may be queued again.
WAITS_AT_MOST_S = 600


def is_left(field: str, *, ahead_s: float = 0) -> Q:
    """Rows whose work was to begin at the moment in this field, and that no task has taken up.

    A moment further ahead than any is set is of a clock that was ahead. It counts as well, or the
    work would wait until then.

    Args:
        ahead_s: How far ahead moments are set in this field.
    """
    now = timezone.now()
    passed = Q((f"{field}__lt", now - timedelta(seconds=settings.TAKE_UP_AFTER_S)))
    return passed | Q((f"{field}__gt", now + timedelta(seconds=ahead_s)))


def is_due(kind: str, key: int) -> bool:
    """Whether to queue this work item now; if so, it is not due again for an interval.

    The interval doubles each time until `reset_backoff`. So items that always fail do not block
    others, and items in a long queue are not queued repeatedly.
    """
    waiting, tried = _backoff_keys(kind, key)
    times = cache.get(tried, 0)
    # Bounds the power; the result is capped anyway.
    seconds = min(settings.TAKE_UP_AFTER_S * 2 ** min(times, 16), LONGEST_BACKOFF_S)
    if not cache.add(waiting, 1, timeout=seconds):
        return False
    cache.set(tried, times + 1, timeout=2 * LONGEST_BACKOFF_S)
    return True


def reset_backoff(kind: str, key: int) -> None:
    """After success: the item is due at once next time."""
    cache.delete_many(_backoff_keys(kind, key))


def claim_place(task: str, key: int, queue: str) -> bool:
    """Whether to queue a task that does all there is to do: False while one of that key waits.

    The task calls `release_place` before it looks for work, so what comes later is queued again.
    """
    return cache.add(_place_key(task, key, queue), 1, timeout=WAITS_AT_MOST_S)


def release_place(task: str, key: int) -> None:
    """The task has begun. It may be queued again: it may not see what is stored after this."""
    with suppress(redis.RedisError):
        cache.delete_many([_place_key(task, key, queue) for queue in (QUEUE, BULK)])


def _place_key(task: str, key: int, queue: str) -> str:
    return f"waits:{queue}:{task}:{key}"


def _backoff_keys(kind: str, key: int) -> tuple[str, str]:
    return f"take-up-{kind}-{key}-waiting", f"take-up-{kind}-{key}-tried"

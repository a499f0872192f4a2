"""Exponential backoff, capped at 6 h, for re-queueing unfinished work."""

from __future__ import annotations

from django.conf import settings
from django.core.cache import cache

LONGEST_S = 6 * 3600


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


def _names(kind: str, key: int) -> tuple[str, str]:
    return f"take-up-{kind}-{key}-waiting", f"take-up-{kind}-{key}-tried"

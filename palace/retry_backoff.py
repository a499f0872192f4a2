"""Taking up what was left undone: soon, and at growing intervals while it does not help."""

from __future__ import annotations

from django.conf import settings
from django.core.cache import cache

LONGEST_S = 6 * 3600


def is_due(kind: str, key: int) -> bool:
    """Whether to queue this piece of work now; if so it is not due again for a while.

    The while doubles each time until `done`. So what fails for ever is not tried every minute,
    never keeps the rest from its turn, and what waits in a long queue is not queued many times.
    """
    waiting, tried = _names(kind, key)
    times = cache.get(tried, 0)
    # Beyond the longest anyway; the power would grow without end.
    seconds = min(settings.TAKE_UP_AFTER_S * 2 ** min(times, 16), LONGEST_S)
    if not cache.add(waiting, 1, timeout=seconds):
        return False
    cache.set(tried, times + 1, timeout=2 * LONGEST_S)
    return True


def done(kind: str, key: int) -> None:
    """It went well: should it be left again, it is due at once."""
    cache.delete_many(_names(kind, key))


def _names(kind: str, key: int) -> tuple[str, str]:
    return f"take-up-{kind}-{key}-waiting", f"take-up-{kind}-{key}-tried"

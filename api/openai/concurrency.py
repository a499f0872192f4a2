"""Limit a process's concurrent forwarded requests per person: each occupies a thread."""

from __future__ import annotations

import threading
from collections import Counter

from api.rest.problems import Problem

MOST_AT_ONCE = 32

_taken: Counter[int] = Counter()
_lock = threading.Lock()


def take(owner_id: int) -> None:
    """
    Raises:
        Problem: 429, the limit is reached.
    """
    with _lock:
        if _taken[owner_id] >= MOST_AT_ONCE:
            said = f"{MOST_AT_ONCE} requests of yours wait for a model already. Try again soon."
            raise Problem(429, "too_many_at_once", said, headers={"Retry-After": "1"})
        _taken[owner_id] += 1


def give_back(owner_id: int) -> None:
    with _lock:
        _taken[owner_id] -= 1
        if not _taken[owner_id]:
            del _taken[owner_id]

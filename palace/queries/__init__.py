"""Read models: rows with counts and evidence, shared by pages and programs.

Figures added up from many rows of a palace are cached until the palace changes. Only counts and
keys of rows belong into that cache: what is deleted stays in it for a while.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import redis
from django.core.cache import cache
from django.db import connection

from palace.models import Palace

T = TypeVar("T")

# A database that is restored from a backup may repeat a state, with other contents.
KEPT_S = 600
# Every write of drawers is in the log of changes; of names and kinds, among the activities.
_STATE = """
SELECT (
    SELECT revision FROM palace_change WHERE palace_id = %(palace)s ORDER BY revision DESC LIMIT 1
), (
    SELECT id FROM palace_activity WHERE palace_id = %(palace)s
    ORDER BY created_at DESC, id DESC LIMIT 1
)
"""


def until_changed(palace: Palace, name: str, compute: Callable[[], T]) -> T:
    """The cached figure of this name, or what `compute` returns.

    Args:
        compute: What it returns is written as JSON, and is not null.
    """
    what = hashlib.sha256(name.encode()).hexdigest()
    key = f"figures:{palace.uuid}:{_state(palace)}:{what}"
    kept: T | None = None
    with suppress(redis.RedisError):  # Without it, it is computed.
        kept = cache.get(key)
    if kept is not None:
        return kept
    figure = compute()
    with suppress(redis.RedisError):
        cache.set(key, figure, KEPT_S)
    return figure


def _state(palace: Palace) -> str:
    with connection.cursor() as cursor:
        cursor.execute(_STATE, {"palace": palace.pk})
        ((revision, activity),) = cursor.fetchall()
    return f"{revision}-{activity}"

"""Read models: rows with counts and evidence, shared by pages and programs.

Figures added up from many rows of a palace are cached until the palace changes. Only counts and
keys of rows belong into that cache: what is deleted stays in it for a while.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TypeVar

import redis
from django.core.cache import cache

from isolation.raw_sql import fetch_rows
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
    return each_until_changed(palace, [name], lambda _: {name: compute()})[name]


def each_until_changed(
    palace: Palace, names: Collection[str], compute: Callable[[list[str]], dict[str, T]]
) -> dict[str, T]:
    """Likewise of several names; `compute` is given those that are not cached, if there are any."""
    if not names:
        return {}
    before = f"figures:{palace.uuid}:{_state(palace)}"
    keys = {name: f"{before}:{hashlib.sha256(name.encode()).hexdigest()}" for name in names}
    kept: dict[str, T] = {}
    with suppress(redis.RedisError):  # Without it, all are computed.
        kept = cache.get_many(keys.values())
    found = {name: kept[key] for name, key in keys.items() if key in kept}
    if missing := [name for name in keys if name not in found]:
        new = compute(missing)
        with suppress(redis.RedisError):
            cache.set_many({keys[name]: figure for name, figure in new.items()}, KEPT_S)
        found |= new
    return found


def _state(palace: Palace) -> str:
    ((revision, activity),) = fetch_rows(_STATE, {"palace": palace.pk}, prepared=True)
    return f"{revision}-{activity}"

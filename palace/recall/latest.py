"""The latest: what a conversation opens with where nothing fits what it opens with."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from palace.models import Drawer, Palace
from palace.recall.recollection import Hit


def latest(
    palace: Palace, as_of: datetime | None, exclude_ids: Collection[int], limit: int
) -> tuple[Hit, ...]:
    """What the user said last, the newest first, without a score: no question found it.

    Args:
        exclude_ids: Keys of drawers that whoever asks has before them anyway.
    """
    said = Drawer.objects.within(palace).kept().with_place().filter(role="user")
    if as_of is not None:
        said = said.filter(said_at__lte=as_of)
    newest = said.exclude(pk__in=exclude_ids).order_by("-said_at", "-pk")[:limit]
    return tuple(
        Hit(drawer, drawer.pointer, score=0.0, signals={}, passage=(0, len(drawer.text)))
        for drawer in newest
    )

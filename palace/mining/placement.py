"""Drawers that came with their places: put back from an export, they are indexed and not read.

A drawer that is mined is given its closet and its passages at once; one that has a closet and is
not mined was mined elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from llm.commits import commit_without_waiting
from palace.mining.mined_drawers import write_mined
from palace.models import Drawer, Palace, Room
from palace.models.hierarchy import DrawerQuerySet
from palace.storage.indexing.passages import Embedded
from palace.storage.indexing.spaces import active_space, stays_active

# Drawers that are indexed together: a full load for the embedder.
BATCH = 384


def placed(palace: Palace) -> DrawerQuerySet:
    """Those that have a place and are to be indexed, in the trash too."""
    drawers = Drawer.objects.within(palace)
    return drawers.filter(mined_at=None, closet__isnull=False)


def index_placed(rooms: Sequence[Room]) -> None:
    """Make passages and postings of what is placed in rooms of one palace.

    Call it holding the rooms. It may be killed and repeated.
    """
    if not rooms:
        return
    palace = rooms[0].palace
    waiting = placed(palace).filter(room__in=rooms).order_by("room_id", "position", "pk")
    while drawers := list(waiting[:BATCH]):
        _index(palace, drawers)


def _index(palace: Palace, drawers: Sequence[Drawer]) -> None:
    space = active_space()
    embedded = Embedded(palace, space, [drawer.text for drawer in drawers])
    with transaction.atomic():
        # Lost to a power cut, it is done again: the mark that it was done is lost with it.
        commit_without_waiting()
        palace.lock()
        held = placed(palace).filter(pk__in=[drawer.pk for drawer in drawers]).order_by("pk")
        keys = set(held.select_for_update().values_list("pk", flat=True))
        if stays_active(space):
            write_mined(palace, drawers, embedded, [each for each in drawers if each.pk in keys])

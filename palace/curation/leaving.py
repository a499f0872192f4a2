"""Leaving: a conversation, or a whole palace, deleted at once and for good."""

from __future__ import annotations

from palace.curation.purge import Purge
from palace.curation.trash import trash_drawers
from palace.models import Drawer, Palace


def delete_conversation(palace: Palace, source: str, external_id: str) -> int:
    """Delete a conversation's drawers, wherever they lie by now; returns how many there were."""
    drawers = Drawer.objects.filter(palace=palace, source=source, conversation=external_id)
    if not drawers.exists():
        return 0
    trash_drawers(palace, drawers)
    purge = Purge(palace)
    purge.run(drawers)
    return purge.count


def delete_palace(palace: Palace) -> None:
    """Delete all that is remembered about one person, with every trace of their words."""
    drawers = Drawer.objects.filter(palace=palace)
    trash_drawers(palace, drawers)
    # Batch by batch: cached vectors are known by the words they are of.
    Purge(palace).run(drawers)
    palace.delete()

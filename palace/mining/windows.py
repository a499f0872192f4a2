"""Windows: how much of a conversation is read at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from palace.models import Drawer

# Up to here a conversation is read in one piece.
WHOLE = 50
# Longer ones are read in windows, fixed by position so that a repeated run cuts the same.
WINDOW = 10
# Windows mined in one transaction, of about as many drawers as a whole conversation.
WINDOWS_A_BATCH = 6
# Turns before a window that are shown with it, for understanding only.
BEFORE = 4


def is_at_rest(room_id: int, last: int) -> bool:
    """Whether nothing was said after that drawer, or enough for a window waits."""
    unmined = Drawer.objects.unmined().filter(room=room_id)
    return not unmined.filter(pk__gt=last).exists() or unmined.count() >= WINDOW


def windows(drawers: Sequence[Drawer], conversation_length: int) -> list[list[Drawer]]:
    """Cut unmined drawers, in order, into windows."""
    if conversation_length <= WHOLE:
        return [list(drawers)] if drawers else []
    return [list(group) for _, group in groupby(drawers, key=lambda d: d.position // WINDOW)]

"""Windows: the parts of a conversation that are mined at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from palace.models import Drawer

# Conversations up to this length are one window.
WHOLE = 50
# Longer ones are split by position, so that repeated runs split the same way.
WINDOW = 10
# Windows mined in one transaction: about as many drawers as in a whole conversation.
WINDOWS_A_BATCH = 6
# Turns before a window that are shown as context.
BEFORE = 4


def is_at_rest(room_id: int, last: int) -> bool:
    """Whether no unmined drawer follows that drawer, or enough for a window are unmined."""
    unmined = Drawer.objects.unmined().filter(room=room_id)
    return not unmined.filter(pk__gt=last).exists() or unmined.count() >= WINDOW


def windows(drawers: Sequence[Drawer], conversation_length: int) -> list[list[Drawer]]:
    """Split unmined drawers, in order, into windows."""
    if conversation_length <= WHOLE:
        return [list(drawers)] if drawers else []
    return [list(group) for _, group in groupby(drawers, key=lambda d: d.position // WINDOW)]

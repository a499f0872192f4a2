"""Our own words must not become memories: the block recall put into a prompt is taken out again."""

from __future__ import annotations

import dataclasses
import re

from palace.recall.packing import BLOCK_END, BLOCK_START
from palace.transcripts import Turn

_BLOCK = re.compile(re.escape(BLOCK_START) + ".*?" + re.escape(BLOCK_END) + r"\n*", re.DOTALL)


def without_injected_memory(turn: Turn) -> Turn:
    """The turn as it was before recall added to it.

    Only the exact opening that recall writes counts, so that somebody's own words about
    `<memory_context>` stay as they are.
    """
    if BLOCK_START not in turn.text:
        return turn
    return dataclasses.replace(turn, text=_BLOCK.sub("", turn.text))

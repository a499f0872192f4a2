"""Turn ids: a turn is one POST; its messages' ids begin with the turn's id."""

from __future__ import annotations

from uuid import UUID, uuid4, uuid5

from palace.models import Drawer, IdempotentWrite

SOURCE = "api"
# A session is a conversation named by a program: in a turn, as the fact API's `run_id`, by MCP's
# `remember`, or through the proxy.
SESSION_SOURCES = (SOURCE, "sdk", "mcp", "proxy")
_AGAIN = UUID("4c76be0a-6a17-4f8c-9d59-6df4e2b3a9d1")


def new_turn(write: IdempotentWrite | None) -> str:
    """The turn id: the same for the same write, so a repeated request files nothing twice."""
    return str(uuid5(_AGAIN, str(write.pk)) if write else uuid4())


def message_id(turn: str, place: int) -> str:
    return f"{turn}/{place}"


def turn_of(drawer: Drawer) -> str:
    """The drawer's turn id; the drawer's own id if it came by another API."""
    if drawer.source == SOURCE:
        return drawer.external_id.rpartition("/")[0] or str(drawer.uuid)
    return str(drawer.uuid)

"""A turn is what one request brought: its messages' ids begin with the turn's."""

from __future__ import annotations

from uuid import UUID, uuid4, uuid5

from palace.models import Drawer, IdempotentWrite

SOURCE = "api"
# A session is a conversation that a program named: in a turn, as the fact API's `run_id`, by MCP's
# `remember`, or through the proxy.
SESSION_SOURCES = (SOURCE, "sdk", "mcp", "proxy")
_AGAIN = UUID("4c76be0a-6a17-4f8c-9d59-6df4e2b3a9d1")


def new_turn(write: IdempotentWrite | None) -> str:
    """The same for the same write: a request that died and is sent again files nothing twice."""
    return str(uuid5(_AGAIN, str(write.pk)) if write else uuid4())


def message_id(turn: str, place: int) -> str:
    return f"{turn}/{place}"


def turn_of(drawer: Drawer) -> str:
    """The turn that brought a drawer; of what came by another door, the drawer itself."""
    if drawer.source == SOURCE:
        return drawer.external_id.rpartition("/")[0] or str(drawer.uuid)
    return str(drawer.uuid)

"""Places: wings, and drawers by their address."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from api.mcp.callers import Caller
from api.mcp.fields import OfSomebody, SomeText, Told
from api.mcp.registry import tool
from api.rest.problems import Problem
from palace.aaak import Pointer
from palace.models import Drawer, Palace
from palace.queries.places import WingRow, find_by_pointer, wing_rows

MOST_WINGS = 1_000


class DrawerAsked(OfSomebody):
    id: SomeText = Field(description="A pointer such as § W-042/R-11/D-007, or a UUID.")


class DrawerTold(Told):
    uuid: UUID
    pointer: str
    text: str = Field(description="To the byte.")
    role: str
    speaker: str
    said_at: datetime
    wing: str
    room: str
    conversation: str
    metadata: dict[str, Any]
    tags: dict[str, list[str]] = Field(
        description="AAAK: p people, l locations, e events, i items, t time."
    )


@tool("Get a drawer", "read")
def get_drawer(caller: Caller, asked: DrawerAsked) -> DrawerTold:
    """One message as it was said, with where it is kept."""
    address, palace = _address(asked.id), caller.palace(asked.user_id)
    drawer = _find(palace, address) if palace else None
    if drawer is None:
        said = f"There is no drawer {asked.id[:100]} here, or it is in the trash."
        raise Problem(404, "no_such_drawer", said)
    return DrawerTold(
        uuid=drawer.uuid,
        pointer=str(drawer.pointer),
        text=drawer.text,
        role=drawer.role,
        speaker=drawer.speaker,
        said_at=drawer.said_at,
        wing=drawer.room.wing.name,
        room=drawer.room.title,
        conversation=drawer.conversation,
        metadata=drawer.metadata or {},
        tags=drawer.tags,
    )


def _address(text: str) -> UUID | Pointer:
    """
    Raises:
        BadPointer: it is neither.
    """
    try:
        return UUID(text)
    except ValueError:
        return Pointer.parse(text)


def _find(palace: Palace, address: UUID | Pointer) -> Drawer | None:
    """The kept drawer there."""
    if isinstance(address, Pointer):
        return find_by_pointer(palace, address)
    return Drawer.objects.within(palace).kept().with_place().filter(uuid=address).first()


class WingsAsked(OfSomebody):
    limit: int = Field(200, ge=1, le=MOST_WINGS)


class WingTold(Told):
    uuid: UUID
    number: int = Field(description="Of its pointers: W-042 is 42; 0 is what is unsorted.")
    name: str
    kind: str = Field(description="person, project, topic or agent.")
    rooms: int
    drawers: int


class WingsTold(Told):
    wings: list[WingTold] = Field(description="By name.")
    total: int


@tool("List wings", "read")
def list_wings(caller: Caller, asked: WingsAsked) -> WingsTold:
    """The subjects that the palace is about, with how many conversations and messages each has."""
    palace = caller.palace(asked.user_id)
    rows = wing_rows(palace) if palace else []
    return WingsTold(wings=[wing_told(row) for row in rows[: asked.limit]], total=len(rows))


def wing_told(row: WingRow) -> WingTold:
    return WingTold(
        uuid=row.wing.uuid,
        number=row.wing.number,
        name=row.wing.name,
        kind=row.wing.kind,
        rooms=row.rooms,
        drawers=row.drawers,
    )

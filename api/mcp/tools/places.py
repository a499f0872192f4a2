"""Palace tools: wings, and drawers by address."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from api.mcp.registry import Caller, PalaceRequest, SomeText, ToolResponse, tool
from api.rest.problems import Problem
from palace.models import Drawer, Palace, Pointer
from palace.queries.places import WingRow, find_by_pointer, wing_rows

MOST_WINGS = 1_000


class DrawerRequest(PalaceRequest):
    id: SomeText = Field(description="A pointer such as § W-042/R-11/D-007, or a UUID.")


class DrawerResponse(ToolResponse):
    uuid: UUID
    pointer: str
    text: str = Field(description="Verbatim.")
    role: str
    speaker: str
    said_at: datetime
    wing: str
    room: str
    conversation: str
    metadata: dict[str, Any]
    tags: dict[str, list[str]] = Field(
        description="AAAK: p people and pets, l locations, o organisations, e events, i items, "
        "t time."
    )


@tool("Get a drawer", "read")
def get_drawer(caller: Caller, request: DrawerRequest) -> DrawerResponse:
    """Get one message verbatim, with its place in the palace."""
    address, palace = _address(request.id), caller.palace(request.user_id)
    drawer = _find(palace, address) if palace else None
    if drawer is None:
        said = f"There is no drawer {request.id[:100]} here, or it is in the trash."
        raise Problem(404, "no_such_drawer", said)
    return DrawerResponse(
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
        BadPointer: it is neither a UUID nor a pointer.
    """
    try:
        return UUID(text)
    except ValueError:
        return Pointer.parse(text)


def _find(palace: Palace, address: UUID | Pointer) -> Drawer | None:
    """The drawer at that address, unless it is in the trash."""
    if isinstance(address, Pointer):
        return find_by_pointer(palace, address)
    return Drawer.objects.within(palace).kept().with_place().filter(uuid=address).first()


class WingsRequest(PalaceRequest):
    limit: int = Field(200, ge=1, le=MOST_WINGS)


class WingFields(ToolResponse):
    uuid: UUID
    number: int = Field(description="As in pointers: W-042 is 42; 0 is the unsorted wing.")
    name: str
    kind: str = Field(description="person, project, topic or agent.")
    rooms: int
    drawers: int


class WingsResponse(ToolResponse):
    wings: list[WingFields] = Field(description="By name.")
    total: int


@tool("List wings", "read")
def list_wings(caller: Caller, request: WingsRequest) -> WingsResponse:
    """List the palace's subjects, with the number of conversations and messages of each."""
    palace = caller.palace(request.user_id)
    rows = wing_rows(palace) if palace else []
    return WingsResponse(wings=[wing_fields(row) for row in rows[: request.limit]], total=len(rows))


def wing_fields(row: WingRow) -> WingFields:
    return WingFields(
        uuid=row.wing.uuid,
        number=row.wing.number,
        name=row.wing.name,
        kind=row.wing.kind,
        rooms=row.rooms,
        drawers=row.drawers,
    )

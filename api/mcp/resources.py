"""MCP resources: wings, and drawers verbatim, by URI."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from mcp import types

from api.mcp.registry import Caller, ToolResponse, has_access
from api.mcp.tools.places import WingFields, WingsResponse, wing_fields
from api.rest.problems import Problem
from language.storable import is_storable
from palace.models import Drawer, Palace, Wing
from palace.queries.places import WingRow, rooms_of, wing_rows

JSON = "application/json"
WINGS = "loci://wings"
# A wing lists at most this many of its latest rooms.
ROOMS = 100

TEMPLATES = [
    types.ResourceTemplate(
        uri_template="loci://wings{?user_id}",
        name="wings",
        title="Wings of a palace",
        description="The palace's subjects. Without user_id, those of your own palace.",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        uri_template="loci://wing/{uuid}",
        name="wing",
        title="Wing",
        description=f"A subject with its latest {ROOMS} rooms.",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        uri_template="loci://drawer/{uuid}",
        name="drawer",
        title="Drawer",
        description="One message, verbatim.",
        mime_type="text/plain",
    ),
]
LISTED = [
    types.Resource(
        uri=WINGS,
        name="wings",
        title="Wings",
        description="The subjects of your palace.",
        mime_type=JSON,
    )
]


class RoomFields(ToolResponse):
    uuid: UUID
    number: int
    title: str
    started_at: str
    drawers: int


class WingWithRooms(WingFields):
    latest_rooms: list[RoomFields]


@has_access
def read(caller: Caller, uri: str) -> types.TextResourceContents:
    """
    Raises:
        Problem: 404, there is no such resource, or the caller may not see it.
    """
    caller.check("read")
    parts = _parts(uri)
    kind = parts[0] if parts else ""
    if kind == "wings" and len(parts) == 1:
        return _json(uri, _wings(caller, _user_id(uri)))
    readers: dict[str, Callable[[Caller, str, UUID], types.TextResourceContents]] = {
        "wing": _wing,
        "drawer": _drawer,
    }
    key = _uuid(parts[1]) if len(parts) == 2 else None
    if kind not in readers or key is None:
        raise _nothing(uri)
    return readers[kind](caller, uri, key)


def _parts(uri: str) -> list[str]:
    """The URI's kind and the rest of its path; empty if it is not a loci: URI."""
    try:
        address = urlsplit(uri)
    except ValueError:
        return []
    if address.scheme != "loci":
        return []
    return [address.netloc, *address.path.split("/")[1:]]


def _user_id(uri: str) -> str | None:
    named = parse_qs(urlsplit(uri).query, keep_blank_values=True).get("user_id", [])
    return named[-1] if named else None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _wings(caller: Caller, user_id: str | None) -> WingsResponse:
    palace = caller.palace(user_id)
    rows = wing_rows(palace) if palace else []
    return WingsResponse(wings=[wing_fields(row) for row in rows], total=len(rows))


def _wing(caller: Caller, uri: str, uuid: UUID) -> types.TextResourceContents:
    for palace in caller.palaces():
        for row in _rows(palace, uuid):
            rooms = [
                RoomFields(
                    uuid=room.uuid,
                    number=room.number,
                    title=room.title,
                    started_at=room.started_at.isoformat(),
                    drawers=room.drawer_count,  # type: ignore[attr-defined]  # rooms_of counts.
                )
                for room in rooms_of(row.wing)[:ROOMS]
            ]
            fields = wing_fields(row).model_dump()
            return _json(uri, WingWithRooms(**fields, latest_rooms=rooms))
    raise _nothing(uri)


def _rows(palace: Palace, uuid: UUID) -> list[WingRow]:
    if not Wing.objects.within(palace).filter(uuid=uuid).exists():
        return []
    return [row for row in wing_rows(palace) if row.wing.uuid == uuid]


def _drawer(caller: Caller, uri: str, uuid: UUID) -> types.TextResourceContents:
    drawers = Drawer.objects.kept().filter(palace__in=caller.palaces(), uuid=uuid)
    text = drawers.values_list("text", flat=True).first()
    if text is None:
        raise _nothing(uri)
    return types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)


def _json(uri: str, response: ToolResponse) -> types.TextResourceContents:
    return types.TextResourceContents(uri=uri, mime_type=JSON, text=response.model_dump_json())


def _nothing(uri: str) -> Problem:
    shown = uri[:200] if is_storable(uri) else "of that address"
    said = f"There is nothing at {shown}. The resource templates list the valid addresses."
    return Problem(404, "no_such_resource", said)

"""Resources: wings, and drawers to the byte, by address."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from mcp import types

from api.mcp.callers import Caller, within_reach
from api.mcp.fields import Told
from api.mcp.tools.places import WingsTold, WingTold, wing_told
from api.rest.problems import Problem
from palace.models import Drawer, Palace, Wing
from palace.storable import is_storable
from palace.views.page_queries import WingRow, rooms_of, wing_rows

JSON = "application/json"
WINGS = "loci://wings"
# Of a wing, so many of its latest rooms are told.
ROOMS = 100

TEMPLATES = [
    types.ResourceTemplate(
        uri_template="loci://wings{?user_id}",
        name="wings",
        title="Wings of somebody's palace",
        description="The subjects it is about. Without user_id, of your own.",
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
        description="One message, to the byte.",
        mime_type="text/plain",
    ),
]
LISTED = [
    types.Resource(
        uri=WINGS,
        name="wings",
        title="Wings",
        description="The subjects that your palace is about.",
        mime_type=JSON,
    )
]


class RoomTold(Told):
    uuid: UUID
    number: int
    title: str
    started_at: str
    drawers: int


class WingWithRooms(WingTold):
    latest_rooms: list[RoomTold]


@within_reach
def read(caller: Caller, uri: str) -> types.TextResourceContents:
    """
    Raises:
        Problem: 404, there is no such resource, or it is a stranger's.
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
    """`drawer` and the rest; none where it is no address of ours."""
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


def _wings(caller: Caller, user_id: str | None) -> WingsTold:
    palace = caller.palace(user_id)
    rows = wing_rows(palace) if palace else []
    return WingsTold(wings=[wing_told(row) for row in rows], total=len(rows))


def _wing(caller: Caller, uri: str, uuid: UUID) -> types.TextResourceContents:
    for palace in caller.palaces():
        for row in _rows(palace, uuid):
            rooms = [
                RoomTold(
                    uuid=room.uuid,
                    number=room.number,
                    title=room.title,
                    started_at=room.started_at.isoformat(),
                    drawers=room.drawer_count,  # type: ignore[attr-defined]  # rooms_of counts.
                )
                for room in rooms_of(row.wing)[:ROOMS]
            ]
            told = wing_told(row).model_dump()
            return _json(uri, WingWithRooms(**told, latest_rooms=rooms))
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


def _json(uri: str, told: Told) -> types.TextResourceContents:
    return types.TextResourceContents(uri=uri, mime_type=JSON, text=told.model_dump_json())


def _nothing(uri: str) -> Problem:
    shown = uri[:200] if is_storable(uri) else "of that address"
    said = f"There is nothing at {shown}. The templates of resources say which addresses there are."
    return Problem(404, "no_such_resource", said)

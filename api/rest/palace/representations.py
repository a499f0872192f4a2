"""Response bodies of wings, rooms, closets and drawers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from palace.curation import trash
from palace.models import Closet, Drawer, Palace, Room, Wing, WingAlias
from palace.queries.facts import SupportedFact, evidence_in, supported_facts
from palace.queries.places import WingRow, wing_counts


def wings(palace: Palace, rows: Sequence[Wing]) -> list[dict[str, Any]]:
    counts = wing_counts(palace)
    aliases: dict[int, list[str]] = {wing.pk: [] for wing in rows}
    names = WingAlias.objects.filter(palace=palace, wing__in=list(aliases)).order_by("slug")
    for key, slug in names.values_list("wing_id", "slug"):
        aliases[key].append(slug)
    return [
        wing_row(WingRow(wing, *counts.get(wing.pk, (0, 0))), aliases[wing.pk]) for wing in rows
    ]


def wing_row(row: WingRow, aliases: Iterable[str]) -> dict[str, Any]:
    wing = row.wing
    return {
        "id": wing.uuid,
        "number": wing.number,
        "name": wing.name,
        "kind": wing.kind,
        "aliases": [slug for slug in aliases if slug != wing.slug],
        "rooms": row.rooms,
        "drawers": row.drawers,
        "created_at": wing.created_at,
    }


def rooms(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """
    Args:
        rows: Rooms with their wings and counts.
    """
    return [
        {
            "id": room.uuid,
            "number": room.number,
            "wing": room.wing.uuid,
            "title": room.title,
            "source": room.source,
            "conversation": room.external_id,
            "agent": room.agent,
            "started_at": room.started_at,
            "ended_at": room.ended_at,
            "closets": room.closet_count,
            "drawers": room.drawer_count,
        }
        for room in rows
    ]


def closets(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """
    Args:
        rows: Closets with their rooms and wings.
    """
    return [
        {
            "id": closet.uuid,
            "wing": closet.room.wing.uuid,
            "room": closet.room.uuid,
            "title": closet.title,
            "drawers": closet.drawer_count,
        }
        for closet in rows
    ]


def drawers(rows: Sequence[Drawer]) -> list[dict[str, Any]]:
    return [drawer_row(drawer) for drawer in rows]


def drawer_row(drawer: Drawer) -> dict[str, Any]:
    return {
        "id": drawer.uuid,
        "pointer": str(drawer.pointer),
        **_place(drawer),
        "role": drawer.role,
        "speaker": drawer.speaker,
        "text": drawer.text,
        "said_at": drawer.said_at,
        "filed_at": drawer.filed_at,
        "source": drawer.source,
        "conversation": drawer.conversation,
        "message": drawer.external_id,
        "position": drawer.position,
        "tags": drawer.tags,
        "metadata": drawer.metadata or {},
    }


def _place(drawer: Drawer) -> Mapping[str, Any]:
    room: Room = drawer.room
    closet: Closet | None = drawer.closet
    return {
        "wing": room.wing.uuid,
        "room": room.uuid,
        "closet": closet.uuid if closet else None,
    }


def drawer_whole(drawer: Drawer) -> dict[str, Any]:
    supported = supported_facts(drawer.palace, drawer, evidence_in(drawer))
    return {
        **drawer_row(drawer),
        "mined": drawer.mined_at is not None,
        "facts": [_supported(each) for each in supported],
    }


def _supported(supported: SupportedFact) -> dict[str, Any]:
    fact = supported.fact
    return {
        "memory": fact.memory,
        "id": fact.uuid,
        "text": fact.text,
        "active": fact.retired_at is None,
        "only_here": supported.is_only,
    }


def batch(moved: trash.Batch) -> dict[str, Any]:
    return {
        "batch": moved.key if moved.drawers else None,
        "drawers": moved.drawers,
        "facts": list(moved.facts),
    }


def trashed(rows: Sequence[Drawer]) -> list[dict[str, Any]]:
    return [trashed_row(drawer) for drawer in rows]


def trashed_row(drawer: Drawer) -> dict[str, Any]:
    at = drawer.trashed_at
    assert at is not None  # noqa: S101 - only for drawers in the trash.
    return {
        **drawer_row(drawer),
        "trashed_at": at,
        "batch": trash.batch_key(at),
        "days_left": trash.days_left(at),
    }

"""Requests and responses of the palace API, and how rows become responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from rest_framework import serializers

from api.rest.parsing import Choice
from language.storable import LABEL_LENGTH
from language.transcripts import ROLES
from palace.curation import trash
from palace.models import TAGS, Closet, Drawer, Palace, Room, Wing, WingAlias
from palace.queries.facts import SupportedFact, evidence_in, supported_facts
from palace.queries.places import WingRow, wing_counts

Shape = serializers.Serializer[Any]
# The maximum number of drawers that one request moves or trashes.
MOST_DRAWERS = 1_000
MOST_ALIASES = 100


@cache
def page_of(shape: type[Shape]) -> type[Shape]:
    """A page of a list."""
    fields = {
        "__doc__": None,
        "next": serializers.URLField(allow_null=True, help_text="The page after this one."),
        "previous": serializers.URLField(allow_null=True),
        "results": serializers.ListField(child=shape()),
    }
    return type(f"{shape.__name__}Page", (serializers.Serializer,), fields)


class UserRequest(Shape):
    user_id = serializers.CharField(
        required=False, help_text="Whose palace; by default the key's own."
    )


class ListRequest(Shape):
    cursor = serializers.CharField(required=False, help_text="From `next` or `previous`.")
    limit = serializers.IntegerField(
        required=False, min_value=1, max_value=200, help_text="Results per page; 50 by default."
    )


class PageRequest(ListRequest, UserRequest):
    """A page of a palace's list."""


class WingShown(Shape):
    id = serializers.UUIDField()
    number = serializers.IntegerField(
        help_text="42 of W-042; 0 is the wing of rooms that wait to be mined."
    )
    name = serializers.CharField()
    kind = serializers.ChoiceField(Wing.Kind.choices)
    aliases = serializers.ListField(
        child=serializers.CharField(), help_text="Its aliases, normalised."
    )
    rooms = serializers.IntegerField()
    drawers = serializers.IntegerField(
        help_text="The number of drawers. All counts exclude the trash."
    )
    created_at = serializers.DateTimeField()


class WingChange(Shape):
    name = serializers.CharField(required=False, min_length=1, max_length=LABEL_LENGTH)
    kind = Choice(Wing.Kind.choices, required=False)
    aliases = serializers.ListField(
        child=serializers.CharField(min_length=1, max_length=LABEL_LENGTH),
        required=False,
        max_length=MOST_ALIASES,
        help_text="All aliases; omitted ones are removed.",
    )


class Into(Shape):
    into = serializers.UUIDField(help_text="The wing to merge into.")


class WingMerged(Shape):
    wing = WingShown(help_text="The merged wing.")
    rooms = serializers.IntegerField(help_text="The number of moved rooms.")
    drawers = serializers.IntegerField(help_text="The number of drawers in them.")


class RoomShown(Shape):
    id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="11 of R-11; it never changes.")
    wing = serializers.UUIDField()
    title = serializers.CharField()
    source = serializers.CharField(  # type: ignore[assignment]
        help_text="Its source: api, chat, chatgpt …"
    )
    conversation = serializers.CharField(help_text="The conversation's id at the source.")
    agent = serializers.CharField(allow_blank=True)
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField()
    closets = serializers.IntegerField()
    drawers = serializers.IntegerField()


class ClosetShown(Shape):
    id = serializers.UUIDField()
    wing = serializers.UUIDField()
    room = serializers.UUIDField()
    title = serializers.CharField(help_text="The topic.")
    drawers = serializers.IntegerField()


class TagsShown(Shape):
    """AAAK tags by letter; letters without tags are omitted."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {
            letter: serializers.ListField(
                child=serializers.CharField(), required=False, help_text=f"{meaning.capitalize()}."
            )
            for letter, meaning in TAGS.items()
        }


class DrawerShown(Shape):
    id = serializers.UUIDField()
    pointer = serializers.CharField(help_text="§ W-042/R-11/D-007")
    wing = serializers.UUIDField()
    room = serializers.UUIDField()
    closet = serializers.UUIDField(allow_null=True)
    role = serializers.ChoiceField(ROLES)
    speaker = serializers.CharField(allow_blank=True)
    text = serializers.CharField(help_text="Verbatim.")
    said_at = serializers.DateTimeField()
    filed_at = serializers.DateTimeField()
    source = serializers.CharField()  # type: ignore[assignment]
    conversation = serializers.CharField(help_text="Its id at the source.")
    message = serializers.CharField(help_text="Its id in the conversation.")
    position = serializers.IntegerField(help_text="In the conversation, from 0.")
    tags = TagsShown()
    metadata = serializers.DictField(help_text="Metadata sent with the message.")


class RestingShown(Shape):
    memory = serializers.UUIDField(help_text="Shared by all versions.")
    id = serializers.UUIDField(help_text="The version's id.")
    text = serializers.CharField()
    active = serializers.BooleanField(help_text="Whether it is active.")
    only_here = serializers.BooleanField(help_text="Whether it is active and has no other source.")


class DrawerWhole(DrawerShown):
    mined = serializers.BooleanField(help_text="Whether it can be found by meaning and by words.")
    facts = serializers.ListField(child=RestingShown(), help_text="The facts it supports.")


class DrawersRequest(PageRequest):
    wing = serializers.UUIDField(required=False)
    room = serializers.UUIDField(required=False)
    closet = serializers.UUIDField(required=False)
    said_after = serializers.DateTimeField(required=False, help_text="Said at this time or later.")
    said_before = serializers.DateTimeField(required=False, help_text="Said before this time.")


class PointerRequest(UserRequest):
    pointer = serializers.CharField(
        help_text="§ W-042/R-11/D-007; § and leading zeros are optional."
    )


class Drawers(Shape):
    drawers = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MOST_DRAWERS
    )


class ToWing(Shape):
    wing = serializers.UUIDField(required=False)
    wing_name = serializers.CharField(
        required=False,
        min_length=1,
        max_length=LABEL_LENGTH,
        help_text="Instead of the id: the wing of this name, created if missing.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        places = self.get_fields().keys() & {"wing", "wing_name", "room"}
        if len(places & attrs.keys()) != 1:
            said = f"Name one place to move to: one of {', '.join(sorted(places))}."
            raise serializers.ValidationError(said)
        return attrs


class Move(Drawers, ToWing):
    room = serializers.UUIDField(required=False, help_text="A room of the drawers' conversation.")


class MovedShown(Shape):
    id = serializers.UUIDField()
    pointer = serializers.CharField()
    former_pointer = serializers.CharField(
        help_text="Still valid, unless the drawer's room or number changed."
    )
    room = serializers.UUIDField()
    wing = serializers.UUIDField()


class MovedDrawers(Shape):
    drawers = serializers.ListField(child=MovedShown(), help_text="In the order of the request.")


class Batch(Shape):
    batch = serializers.IntegerField(
        allow_null=True, help_text="The batch, for `trash/restore/`; null if nothing was moved."
    )
    drawers = serializers.IntegerField(help_text="The number of trashed drawers.")
    facts = serializers.ListField(
        child=serializers.CharField(),
        help_text="Facts that had no other source and are now inactive.",
    )


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

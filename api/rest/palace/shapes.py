"""Requests and responses: wings, rooms, closets, drawers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from language.storable import LABEL_LENGTH
from language.transcripts import ROLES
from palace.models import TAGS, Wing

Shape = serializers.Serializer[Any]

# The maximum number of drawers that one request moves or trashes.
MOST_DRAWERS = 1_000
MOST_ALIASES = 100


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
    kind = serializers.ChoiceField(Wing.Kind.choices, required=False)
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

"""What is asked and shown of places: wings, rooms, closets, drawers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from language.transcripts import ROLES
from palace.aaak import TAGS
from palace.models import Wing
from palace.storable import LABEL_LENGTH

Shape = serializers.Serializer[Any]

# That one request moves, or puts into the trash.
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


class UserAsked(Shape):
    user_id = serializers.CharField(
        required=False, help_text="Whose palace; left out, the key's own."
    )


class ListAsked(Shape):
    cursor = serializers.CharField(required=False, help_text="As `next` and `previous` have it.")
    limit = serializers.IntegerField(
        required=False, min_value=1, max_value=200, help_text="Of results on a page; 50 unless set."
    )


class PageAsked(ListAsked, UserAsked):
    """A page of a list that belongs to a palace."""


class WingShown(Shape):
    id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="42 of W-042; 0 is where rooms wait to be mined.")
    name = serializers.CharField()
    kind = serializers.ChoiceField(Wing.Kind.choices)
    aliases = serializers.ListField(
        child=serializers.CharField(), help_text="Other names it is found by, as they are matched."
    )
    rooms = serializers.IntegerField()
    drawers = serializers.IntegerField(help_text="Without those in the trash; so are all counts.")
    created_at = serializers.DateTimeField()


class WingChange(Shape):
    name = serializers.CharField(required=False, min_length=1, max_length=LABEL_LENGTH)
    kind = serializers.ChoiceField(Wing.Kind.choices, required=False)
    aliases = serializers.ListField(
        child=serializers.CharField(min_length=1, max_length=LABEL_LENGTH),
        required=False,
        max_length=MOST_ALIASES,
        help_text="All other names it is to be found by; those left out lead here no more.",
    )


class Into(Shape):
    into = serializers.UUIDField(help_text="The wing.")


class WingMerged(Shape):
    wing = WingShown(help_text="What the two are now.")
    rooms = serializers.IntegerField(help_text="How many moved.")
    drawers = serializers.IntegerField(help_text="How many those hold.")


class RoomShown(Shape):
    id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="11 of R-11; stays its own wherever it moves.")
    wing = serializers.UUIDField()
    title = serializers.CharField()
    source = serializers.CharField(  # type: ignore[assignment]
        help_text="Who brought it: api, chat, chatgpt …"
    )
    conversation = serializers.CharField(help_text="Its id there.")
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
    """AAAK tags, by letter; letters without any are left out."""

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
    text = serializers.CharField(help_text="To the byte.")
    said_at = serializers.DateTimeField()
    filed_at = serializers.DateTimeField()
    source = serializers.CharField()  # type: ignore[assignment]
    conversation = serializers.CharField(help_text="Its id at the source.")
    message = serializers.CharField(help_text="Its id in the conversation.")
    position = serializers.IntegerField(help_text="In the conversation, from 0.")
    tags = TagsShown()
    metadata = serializers.DictField(help_text="What its teller kept beside it.")


class RestingShown(Shape):
    memory = serializers.UUIDField(help_text="Shared by all versions of it.")
    id = serializers.UUIDField(help_text="Of the version.")
    text = serializers.CharField()
    active = serializers.BooleanField(help_text="Whether it is held.")
    only_here = serializers.BooleanField(help_text="Whether it is held, and rests on nothing else.")


class DrawerWhole(DrawerShown):
    mined = serializers.BooleanField(help_text="Whether it can be found by meaning and by words.")
    facts = serializers.ListField(child=RestingShown(), help_text="What rests on its words.")


class DrawersAsked(PageAsked):
    wing = serializers.UUIDField(required=False)
    room = serializers.UUIDField(required=False)
    closet = serializers.UUIDField(required=False)
    said_after = serializers.DateTimeField(required=False, help_text="At this moment or later.")
    said_before = serializers.DateTimeField(required=False, help_text="Earlier than this moment.")


class PointerAsked(UserAsked):
    pointer = serializers.CharField(help_text="§ W-042/R-11/D-007; § and zeros may be left out.")


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
        help_text="Instead of its id: the wing that goes by this name, made if there is none.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        places = self.get_fields().keys() & {"wing", "wing_name", "room"}
        if len(places & attrs.keys()) != 1:
            said = f"Name one place to move to: one of {', '.join(sorted(places))}."
            raise serializers.ValidationError(said)
        return attrs


class Move(Drawers, ToWing):
    room = serializers.UUIDField(required=False, help_text="Of the drawers' own conversation.")


class MovedShown(Shape):
    id = serializers.UUIDField()
    pointer = serializers.CharField()
    former_pointer = serializers.CharField(
        help_text="Leads to the drawer still, unless its room or its own number changed."
    )
    room = serializers.UUIDField()
    wing = serializers.UUIDField()


class MovedDrawers(Shape):
    drawers = serializers.ListField(child=MovedShown(), help_text="In the order asked.")


class Batch(Shape):
    batch = serializers.IntegerField(
        allow_null=True, help_text="What `trash/restore/` takes; null where nothing was moved."
    )
    drawers = serializers.IntegerField(help_text="How many went to the trash.")
    facts = serializers.ListField(
        child=serializers.CharField(), help_text="What rested on them alone: held no longer."
    )

"""What is asked and shown of the record: recalls, and what was done."""

from __future__ import annotations

from rest_framework import serializers

from api.rest.palace.shapes import PageAsked, Shape
from palace.models import Activity
from palace.recall.trace import (
    KNOWN,
    NO_ROOM,
    PUT_LOWER,
    RANKED_LOWER,
    SHOWN,
    TELLS_NOTHING,
    TOO_FAR,
)

# Stable names for what traces say in words.
LEFT_OUT = {NO_ROOM: "no_room", SHOWN: "already_shown", TELLS_NOTHING: "tells_nothing"}
CUT = {
    KNOWN: "in_conversation",
    PUT_LOWER: "put_lower",
    RANKED_LOWER: "ranked_lower",
    TOO_FAR: "too_far",
}
SIGNALS = "Share of each signal in the score; together they are the score."


class RecollectionRow(Shape):
    id = serializers.UUIDField()
    query = serializers.CharField(
        allow_blank=True, help_text="Empty where it was deleted for good with a drawer's words."
    )
    recipe = serializers.CharField()
    created_at = serializers.DateTimeField()
    asked_at = serializers.DateTimeField(help_text="The moment its words of time refer to.")
    duration_ms = serializers.FloatField()
    hits = serializers.IntegerField()
    facts = serializers.IntegerField()
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="What was degraded or skipped."
    )


class HitShown(Shape):
    place = serializers.IntegerField(help_text="From 1.")
    drawer = serializers.UUIDField()
    pointer = serializers.CharField(help_text="As it was then.")
    score = serializers.FloatField(help_text="Compares within this recall only.")
    signals = serializers.DictField(child=serializers.FloatField(), help_text=SIGNALS)
    passage = serializers.ListField(
        child=serializers.IntegerField(), help_text="Where the best passage starts and ends."
    )
    left_out = serializers.ChoiceField(
        list(LEFT_OUT.values()),
        allow_null=True,
        help_text="Why it is not in the context: it did not fit the budget, the model has it, or it"
        " only asks or quotes.",
    )
    place_before = serializers.IntegerField(
        allow_null=True, help_text="Before a model put the hits in order, if one did."
    )
    shortened = serializers.BooleanField(help_text="Whether the context holds a stretch of it.")


class CutShown(Shape):
    drawer = serializers.UUIDField(allow_null=True, help_text="Null once deleted for good.")
    score = serializers.FloatField()
    signals = serializers.DictField(child=serializers.FloatField(), help_text=SIGNALS)
    why = serializers.ChoiceField(
        list(CUT.values()), help_text="in_conversation: held back, as whoever asked had it already."
    )
    place = serializers.IntegerField(allow_null=True, help_text="By its score, from 1.")


class FactGiven(Shape):
    memory = serializers.UUIDField()
    drawer = serializers.UUIDField(allow_null=True, help_text="That it cites.")
    pointer = serializers.CharField(allow_null=True)
    score = serializers.FloatField()
    left_out = serializers.ChoiceField(list(LEFT_OUT.values()), allow_null=True)


class CarriedShown(Shape):
    item = serializers.CharField()
    turn = serializers.IntegerField(help_text="The turn of the conversation it was given in.")
    drawer = serializers.UUIDField(allow_null=True)
    pointer = serializers.CharField(allow_null=True)
    memory = serializers.UUIDField(allow_null=True)


class RecollectionShown(Shape):
    id = serializers.UUIDField()
    query = serializers.CharField(allow_blank=True)
    recipe = serializers.CharField()
    created_at = serializers.DateTimeField()
    asked_at = serializers.DateTimeField()
    duration_ms = serializers.FloatField()
    notes = serializers.ListField(child=serializers.CharField())
    context = serializers.CharField(  # type: ignore[assignment]
        allow_blank=True, help_text="What a model was given; without what was deleted for good."
    )
    hits = serializers.ListField(child=HitShown(), help_text="Best first.")
    facts = serializers.ListField(child=FactGiven(), help_text="What stood before them as known.")
    carried = serializers.ListField(
        child=CarriedShown(), help_text="What the context holds from earlier turns."
    )
    cut = serializers.ListField(child=CutShown(), help_text="The best of those that were cut.")
    reading = serializers.DictField(help_text="How the question was understood.")
    figures = serializers.DictField(help_text="How many were looked at, cut and given; tokens.")


class ActivityAsked(PageAsked):
    kind = serializers.ChoiceField(Activity.Kind.choices, required=False)


class ActivityShown(Shape):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(Activity.Kind.choices)
    summary = serializers.CharField(help_text="One sentence.")
    detail = serializers.DictField(help_text="Its figures, and ids of what it was about.")
    created_at = serializers.DateTimeField()

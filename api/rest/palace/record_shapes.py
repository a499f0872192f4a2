"""Requests and responses: recall traces and activity."""

from __future__ import annotations

from rest_framework import serializers

from api.rest.palace.shapes import PageRequest, Shape
from palace.models import Activity
from palace.recall.trace import (
    KNOWN,
    NO_ROOM,
    PUT_LOWER,
    RANKED_LOWER,
    SHOWN,
    TOO_FAR,
    UNINFORMATIVE_HIT,
)

# Stable codes for the reasons that traces give in words.
LEFT_OUT = {NO_ROOM: "no_room", SHOWN: "already_shown", UNINFORMATIVE_HIT: "tells_nothing"}
CUT = {
    KNOWN: "in_conversation",
    PUT_LOWER: "put_lower",
    RANKED_LOWER: "ranked_lower",
    TOO_FAR: "too_far",
}
SIGNALS = "Each signal's contribution to the score; they add up to it."


class RecollectionRow(Shape):
    id = serializers.UUIDField()
    query = serializers.CharField(
        allow_blank=True, help_text="Empty if it was purged with a drawer's text."
    )
    recipe = serializers.CharField()
    created_at = serializers.DateTimeField()
    asked_at = serializers.DateTimeField(
        help_text="The reference time of relative dates in the query."
    )
    duration_ms = serializers.FloatField()
    hits = serializers.IntegerField()
    facts = serializers.IntegerField()
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="What was degraded or skipped."
    )


class HitShown(Shape):
    place = serializers.IntegerField(help_text="From 1.")
    drawer = serializers.UUIDField()
    pointer = serializers.CharField(help_text="At the time of the recall.")
    score = serializers.FloatField(help_text="Comparable within this recall only.")
    signals = serializers.DictField(child=serializers.FloatField(), help_text=SIGNALS)
    passage = serializers.ListField(
        child=serializers.IntegerField(), help_text="Start and end of the best passage."
    )
    left_out = serializers.ChoiceField(
        list(LEFT_OUT.values()),
        allow_null=True,
        help_text="Why it is not in the context: it did not fit the budget, the model has it, or it"
        " only asks or quotes.",
    )
    place_before = serializers.IntegerField(
        allow_null=True, help_text="The rank before a model reranked the hits, if one did."
    )
    shortened = serializers.BooleanField(help_text="Whether the context has only an excerpt.")


class CutShown(Shape):
    drawer = serializers.UUIDField(allow_null=True, help_text="Null once purged.")
    score = serializers.FloatField()
    signals = serializers.DictField(child=serializers.FloatField(), help_text=SIGNALS)
    why = serializers.ChoiceField(
        list(CUT.values()),
        help_text="in_conversation: excluded, because it was in the prompt already.",
    )
    place = serializers.IntegerField(allow_null=True, help_text="Its rank by score, from 1.")


class FactGiven(Shape):
    memory = serializers.UUIDField()
    drawer = serializers.UUIDField(allow_null=True, help_text="The drawer that it cites.")
    pointer = serializers.CharField(allow_null=True)
    score = serializers.FloatField()
    left_out = serializers.ChoiceField(list(LEFT_OUT.values()), allow_null=True)


class CarriedShown(Shape):
    item = serializers.CharField()
    turn = serializers.IntegerField(help_text="The turn in which it was given.")
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
        allow_blank=True, help_text="The context given to the model, without purged text."
    )
    hits = serializers.ListField(child=HitShown(), help_text="Best first.")
    facts = serializers.ListField(
        child=FactGiven(), help_text="The known facts at the head of the context."
    )
    carried = serializers.ListField(
        child=CarriedShown(), help_text="Items carried over from earlier turns."
    )
    cut = serializers.ListField(child=CutShown(), help_text="The best rejected candidates.")
    reading = serializers.DictField(help_text="How the question was understood.")
    figures = serializers.DictField(
        help_text="The numbers of candidates, cuts and results; tokens."
    )


class ActivityRequest(PageRequest):
    kind = serializers.ChoiceField(Activity.Kind.choices, required=False)


class ActivityShown(Shape):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(Activity.Kind.choices)
    summary = serializers.CharField(help_text="One sentence.")
    detail = serializers.DictField(help_text="Its figures, and the ids concerned.")
    created_at = serializers.DateTimeField()

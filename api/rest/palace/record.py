"""Recall traces and the activity log, with their responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.palace import PalaceApiView, shapes
from api.rest.palace.shapes import PageRequest, Shape
from api.rest.parsing import Choice
from llm.tokens import count_tokens
from palace.models import Activity, Drawer, RecollectionTrace
from palace.recall.recipes import all_shares
from palace.recall.trace import (
    KNOWN,
    NO_ROOM,
    PUT_LOWER,
    RANKED_LOWER,
    REPEATS,
    SHOWN,
    TOO_FAR,
    UNINFORMATIVE_HIT,
)

# Stable codes for the reasons that traces give in words.
LEFT_OUT = {NO_ROOM: "no_room", SHOWN: "already_shown", UNINFORMATIVE_HIT: "tells_nothing"}
CUT = {
    KNOWN: "in_conversation",
    REPEATS: "same_question",
    PUT_LOWER: "put_lower",
    RANKED_LOWER: "ranked_lower",
    TOO_FAR: "too_far",
}
SIGNALS = "Each signal's contribution to the score; they add up to it."
TAG = ["record"]
NEWEST_FIRST = ["-created_at", "-pk"]


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
    outdated_since = serializers.DateTimeField(
        allow_null=True, help_text="When a fact that it states ended, or was corrected."
    )


class CutShown(Shape):
    drawer = serializers.UUIDField(allow_null=True, help_text="Null once purged.")
    score = serializers.FloatField()
    signals = serializers.DictField(child=serializers.FloatField(), help_text=SIGNALS)
    why = serializers.ChoiceField(
        list(CUT.values()),
        help_text="in_conversation: excluded, because it was in the prompt already. same_question:"
        " excluded, because it asks the same.",
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
    kind = Choice(Activity.Kind.choices, required=False)


class ActivityShown(Shape):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(Activity.Kind.choices)
    summary = serializers.CharField(help_text="One sentence.")
    detail = serializers.DictField(help_text="Its figures, and the ids concerned.")
    created_at = serializers.DateTimeField()


class RecollectionsView(PalaceApiView):
    @extend_schema(
        tags=TAG,
        parameters=[shapes.PageRequest],
        responses={200: shapes.page_of(RecollectionRow)},
    )
    def get(self, request: Request) -> Response:
        """List recalls, newest first: of chats, programs and people."""
        traces = RecollectionTrace.objects.filter(palace=self.requested_palace())
        traces = traces.defer("candidates", "reading", "figures", "context", "carried")
        return self.page(traces, NEWEST_FIRST, lambda rows: [_row(trace) for trace in rows])


def _row(trace: RecollectionTrace) -> dict[str, Any]:
    return {**_trace_fields(trace), "hits": len(trace.hits), "facts": len(trace.facts)}


def _trace_fields(trace: RecollectionTrace) -> dict[str, Any]:
    return {
        "id": trace.uuid,
        "query": trace.query,
        "recipe": trace.recipe,
        "created_at": trace.created_at,
        "asked_at": trace.now,
        "duration_ms": trace.duration_ms,
        "notes": trace.notes,
    }


class RecollectionView(PalaceApiView):
    @extend_schema(
        tags=TAG,
        parameters=[shapes.UserRequest],
        responses={200: RecollectionShown},
    )
    def get(self, request: Request, uuid: UUID) -> Response:
        """Get a recall's trace: its hits with their signals, and why others were cut."""
        trace = self.one_of(RecollectionTrace.objects.filter(palace=self.entered()), uuid)
        return Response(
            {
                **_trace_fields(trace),
                "context": trace.context,
                "hits": [_hit(place, hit) for place, hit in enumerate(trace.hits, start=1)],
                "facts": [_fact(fact) for fact in trace.facts],
                "carried": [{"memory": None, **each} for each in trace.carried],
                "cut": _cut(trace),
                "reading": trace.reading,
                "figures": trace.figures | {"tokens": count_tokens(trace.context)},
            }
        )


def _hit(place: int, hit: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "place": place,
        "drawer": hit["drawer"],
        "pointer": hit["pointer"],
        "score": hit["score"],
        "signals": all_shares(hit["score"], hit["signals"]),
        "passage": hit.get("passage", []),
        "left_out": _left_out(hit),
        "place_before": hit.get("place_before"),
        "shortened": hit.get("shortened", False),
        "outdated_since": hit.get("outdated_since"),
    }


def _fact(fact: Mapping[str, Any]) -> dict[str, Any]:
    cited = {name: fact[name] for name in ("memory", "drawer", "pointer", "score")}
    return {**cited, "left_out": _left_out(fact)}


def _left_out(traced: Mapping[str, Any]) -> str | None:
    return LEFT_OUT[traced["cut"]] if "cut" in traced else None


def _cut(trace: RecollectionTrace) -> list[dict[str, Any]]:
    cut = trace.cut()
    rows = Drawer.objects.filter(palace=trace.palace_id, pk__in=[each["drawer"] for each in cut])
    uuids = dict(rows.values_list("pk", "uuid"))
    return [
        {
            "drawer": uuids.get(each["drawer"]),
            "score": each["score"],
            "signals": all_shares(each["score"], each["signals"]),
            "why": CUT[each["cut"]],
            "place": each.get("place"),
        }
        for each in cut
    ]


class ActivityView(PalaceApiView):
    @extend_schema(
        tags=TAG,
        parameters=[ActivityRequest],
        responses={200: shapes.page_of(ActivityShown)},
    )
    def get(self, request: Request) -> Response:
        """List activity, newest first: conversations remembered, drawers trashed, dreams."""
        params = self.read_query(ActivityRequest)
        rows = Activity.objects.filter(palace=self.requested_palace())
        if "kind" in params:
            rows = rows.filter(kind=params["kind"])
        return self.page(rows, NEWEST_FIRST, lambda rows: [_activity(row) for row in rows])


def _activity(activity: Activity) -> dict[str, Any]:
    return {
        "id": activity.uuid,
        "kind": activity.kind,
        "summary": activity.summary,
        "detail": activity.detail,
        "created_at": activity.created_at,
    }

"""Recall traces and the activity log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.palace import record_shapes, shapes
from api.rest.palace.base import PalaceApiView
from api.rest.palace.record_shapes import CUT, LEFT_OUT
from palace.models import Activity, Drawer, RecollectionTrace
from palace.queries.signals import all_shares

TAG = ["record"]
NEWEST_FIRST = ["-created_at", "-pk"]


class RecollectionsView(PalaceApiView):
    @extend_schema(
        tags=TAG,
        parameters=[shapes.PageRequest],
        responses={200: shapes.page_of(record_shapes.RecollectionRow)},
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
        responses={200: record_shapes.RecollectionShown},
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
                "figures": trace.figures,
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
        parameters=[record_shapes.ActivityRequest],
        responses={200: shapes.page_of(record_shapes.ActivityShown)},
    )
    def get(self, request: Request) -> Response:
        """List activity, newest first: conversations remembered, drawers trashed, dreams."""
        params = self.read_query(record_shapes.ActivityRequest)
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

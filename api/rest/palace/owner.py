"""Across all palaces of the owner: model costs and the list of palaces."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from django.db.models import Count
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.palace import owner_shapes, shapes
from api.rest.palace.base import PalaceApiView
from api.rest.palaces import palaces_for
from llm import usage
from llm.usage import Totals
from palace.models import Drawer, Palace
from settings_app.models import settings_of
from settings_app.time_zone import zone_named

TAG = ["owner"]


class UsageView(PalaceApiView):
    scopes: ClassVar[dict[str, str]] = {"GET": "admin"}

    @extend_schema(
        tags=TAG,
        parameters=[owner_shapes.UsageRequest],
        responses={200: owner_shapes.YearShown},
    )
    def get(self, request: Request) -> Response:
        """Model usage and costs of a year, by month and purpose, in the owner's time zone."""
        self.require_all_palaces()
        params = self.read_query(owner_shapes.UsageRequest)
        owner = self.key.owner_id
        with timezone.override(zone_named(settings_of(owner).time_zone)):
            year = params.get("year") or timezone.localtime().year
            rows = usage.by_month(owner, year)
        total = sum((row.totals for row in rows), Totals())
        months = [
            {"month": row.month, "purpose": row.purpose, **_totals(row.totals)} for row in rows
        ]
        return Response({"year": year, "months": months, "total": _totals(total)})


def _totals(totals: Totals) -> dict[str, Any]:
    cost = None if totals.is_unknown else f"{totals.cost_usd:.8f}"
    return {**asdict(totals), "cost_usd": cost}


class PalacesView(PalaceApiView):
    scopes: ClassVar[dict[str, str]] = {"GET": "admin"}

    @extend_schema(
        tags=TAG,
        parameters=[shapes.ListRequest],
        responses={200: shapes.page_of(owner_shapes.PalaceShown)},
    )
    def get(self, request: Request) -> Response:
        """List the palaces of the key, oldest first: one for each person."""
        return self.page(palaces_for(self.key), ["pk"], _palaces)


def _palaces(rows: list[Palace]) -> list[dict[str, Any]]:
    kept = Drawer.objects.kept().filter(palace__in=rows).order_by()
    counts = dict(kept.values_list("palace").annotate(Count("pk")))
    return [
        {
            "id": palace.uuid,
            "user_id": palace.subject or None,
            "drawers": counts.get(palace.pk, 0),
            "created_at": palace.created_at,
        }
        for palace in rows
    ]

"""GET /v1/export: a palace as one file."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from api.rest.base import ApiView
from api.rest.memory_service.shapes import user_field
from api.rest.problems import not_found
from palace.transfer.export import MEDIA_TYPE, download


class ExportRequest(serializers.Serializer[Any]):
    user_id = user_field()


class Zip(BaseRenderer):
    """Declares the media type; the view streams the zip itself."""

    media_type = MEDIA_TYPE
    format = "zip"
    charset = None


class AlwaysZip(BaseContentNegotiation):
    """Ignore `Accept`: the export is always a zip, and problems are JSON."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> Any:
        return JSONRenderer(), JSONRenderer.media_type


class ExportView(ApiView):
    """A key that may read the palace may export it."""

    renderer_classes = (Zip, JSONRenderer)
    content_negotiation_class = AlwaysZip

    @extend_schema(
        tags=["export"],
        parameters=[ExportRequest],
        responses={
            (200, MEDIA_TYPE): OpenApiResponse(
                OpenApiTypes.BINARY,
                description="A zip; docs/export-format.md describes its contents.",
            )
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Export a person's palace as a zip, streamed while it is made.

        A truncated download lacks the zip's directory and does not open.
        """
        palace = self.palace(self.read_query(ExportRequest).get("user_id"))
        if palace is None:
            raise not_found()
        return download(request._request, palace)

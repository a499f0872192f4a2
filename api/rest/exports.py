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
from palace.transfer.export.download import MEDIA_TYPE, download


class ExportAsked(serializers.Serializer[Any]):
    user_id = user_field()


class Zip(BaseRenderer):
    """Only names the kind of answer there is: it is sent as it is made, and rendered by nobody."""

    media_type = MEDIA_TYPE
    format = "zip"
    charset = None


class ZipWhateverIsAsked(BaseContentNegotiation):
    """Problems are JSON, the export is a zip; `Accept` has nothing to choose."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> Any:
        return JSONRenderer(), JSONRenderer.media_type


class ExportView(ApiView):
    """Whoever may read all of it one by one may have it in one piece."""

    renderer_classes = (Zip, JSONRenderer)
    content_negotiation_class = ZipWhateverIsAsked

    @extend_schema(
        tags=["export"],
        parameters=[ExportAsked],
        responses={
            (200, MEDIA_TYPE): OpenApiResponse(
                OpenApiTypes.BINARY, description="A zip; docs/export-format.md says what is in it."
            )
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """All that is remembered about one person, as a zip, sent while it is made.

        What is cut off has no list of contents at its end, and does not open.
        """
        palace = self.palace(self.read_query(ExportAsked).get("user_id"))
        if palace is None:
            raise not_found()
        return download(request._request, palace)

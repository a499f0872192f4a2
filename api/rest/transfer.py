"""POST /v1/conversations/: messages of another program's conversation, each filed once.

GET /v1/export: a palace as one file.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.base import ApiView
from api.rest.memory_shapes import user_field
from api.rest.parsing import Choice, ExactText, Shape
from api.rest.problems import not_found
from language.storable import storable_label
from language.transcripts import ROLES, Transcript, Turn
from palace.mining.pipeline import put_in_project
from palace.mining.tasks import enqueue_mining
from palace.storage import file_transcript
from palace.transfer import import_jobs
from palace.transfer.export import MEDIA_TYPE, download

MOST_MESSAGES = 1_000
MOST_LABEL_CHARS = 1_000
# An export of Loci's has conversations of all sources; its messages come with their own.
SOURCES = sorted(import_jobs.FORMATS.keys() - {"loci"})


class ConversationMessage(Shape):
    id = ExactText(help_text="Its id in the conversation, always the same.")
    role = Choice(ROLES)
    content = ExactText(allow_blank=True, help_text="Stored verbatim.")
    said_at = serializers.DateTimeField(help_text="When it was said.")
    name = ExactText(required=False, allow_blank=True, help_text="Who speaks.")


class ConversationFields(Shape):
    source = Choice(  # type: ignore[assignment]  # A field, not the attribute.
        SOURCES, help_text="The program, as imports call it."
    )
    conversation_id = ExactText(help_text="Its id in that program.")
    title = ExactText(required=False, allow_blank=True, max_length=MOST_LABEL_CHARS)
    agent = ExactText(
        required=False, allow_blank=True, max_length=MOST_LABEL_CHARS, help_text="Who answers."
    )
    project = ExactText(
        required=False,
        allow_blank=True,
        max_length=MOST_LABEL_CHARS,
        help_text="The project's name, or the path of its folder: the wing.",
    )
    user_id = user_field()
    messages = serializers.ListField(
        child=ConversationMessage(), allow_empty=False, max_length=MOST_MESSAGES
    )


class ConversationFiled(Shape):
    conversation_id = serializers.CharField()
    stored = serializers.IntegerField(help_text="New messages.")
    present = serializers.IntegerField(help_text="Messages that were here already.")
    skipped = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many were not stored, by reason."
    )


class ConversationsView(ApiView):
    @extend_schema(
        tags=["memory service"], request=ConversationFields, responses={200: ConversationFiled}
    )
    def post(self, request: Request) -> Response:
        """File messages of another program's conversation, as an import of it would.

        A message that is here already, from here or from an import, is not stored again: send the
        whole conversation, or what is new. Workers mine it.
        """
        params = self.read(ConversationFields)
        palace = self.palace_made(params.get("user_id"))
        transcript = _transcript(params)
        with transaction.atomic():
            filed = file_transcript(palace, transcript)
            if filed.room and filed.stored and transcript.project:
                put_in_project(palace, filed.room, storable_label(transcript.project))
        if filed.room and filed.stored:
            enqueue_mining([filed.room.pk])
        return Response(
            {
                "conversation_id": transcript.external_id,
                "stored": filed.stored,
                "present": filed.present,
                "skipped": dict(filed.skipped),
            }
        )


def _transcript(params: dict[str, Any]) -> Transcript:
    turns = tuple(
        Turn(each["id"], each["role"], each["content"], each["said_at"], each.get("name", ""))
        for each in params["messages"]
    )
    return Transcript(
        params["source"],
        params["conversation_id"],
        params.get("title", ""),
        turns,
        params.get("agent", ""),
        params.get("project", ""),
    )


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
                description="A zip; its contents are described in "
                f"{settings.DOCS_PAGE.format('export-format')}.",
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

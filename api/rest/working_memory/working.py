"""/working-memory/: what is noted of a conversation, by field."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.memory_service.shapes import ExactText, Shape
from api.rest.working_memory.palace_lookup import ShortView, Whose
from palace.sdk.working import ConversationMemory

TAG = ["working memory"]


class FieldsPut(Whose):
    fields = serializers.DictField(  # type: ignore[assignment]
        help_text="Whatever JSON can write, by name; `scratchpad` is a text, `entities` a list."
    )
    ttl_seconds = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        help_text="How long all fields are kept after each use from now on; a day unless given.",
    )


class FieldsNamed(Whose):
    fields = serializers.ListField(  # type: ignore[assignment]
        child=ExactText(), required=False, allow_null=True, default=None
    )


class FieldsShown(Shape):
    conversation_id = serializers.CharField()
    fields = serializers.DictField(  # type: ignore[assignment]
        help_text="By name; empty where nothing is noted."
    )


class FieldsDeleted(Shape):
    deleted = serializers.IntegerField(help_text="How many there were.")


NAMES = OpenApiParameter(
    "fields",
    OpenApiTypes.STR,
    many=True,
    description="Only these; all unless given. Instead a body `{fields: […]}` can be sent.",
)


class WorkingMemoryView(ShortView):
    @extend_schema(tags=TAG, parameters=[Whose], responses={200: FieldsShown})
    def get(self, request: Request, conversation_id: str) -> Response:
        """All that is noted of a conversation. Its time begins anew."""
        return _shown(self.memory.conversation(conversation_id, user_id=self.user()))

    @extend_schema(tags=TAG, parameters=[Whose], request=FieldsPut, responses={200: FieldsShown})
    def put(self, request: Request, conversation_id: str) -> Response:
        """Set these fields and leave the others; returns all. The time of all begins anew.

        413 where all together would be larger than 64 KB: then nothing is set.
        """
        asked = self.read(FieldsPut)
        talk = self.memory.conversation(conversation_id, user_id=self.user(asked))
        talk.put(asked["fields"], ttl_seconds=asked["ttl_seconds"])
        return _shown(talk)

    @extend_schema(
        tags=TAG, parameters=[Whose, NAMES], request=None, responses={200: FieldsDeleted}
    )
    def delete(self, request: Request, conversation_id: str) -> Response:
        """Delete these fields, or all of the conversation."""
        asked = self.read(FieldsNamed)
        talk = self.memory.conversation(conversation_id, user_id=self.user(asked))
        return Response({"deleted": talk.delete(self._names(asked))})

    def _names(self, asked: dict[str, Any]) -> list[str] | None:
        in_address = self.request.query_params.getlist("fields")
        if asked["fields"] is None and not in_address:
            return None
        return [*(asked["fields"] or ()), *in_address]


def _shown(talk: ConversationMemory) -> Response:
    return Response({"conversation_id": talk.conversation_id, "fields": talk.get()})

"""/working-memory/: a conversation's fields."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.memory_service.shapes import ExactText, Shape
from api.rest.working_memory.palace_lookup import PalaceRequest, WorkingMemoryApiView
from palace.sdk.working import ConversationMemory

TAG = ["working memory"]


class FieldsPut(PalaceRequest):
    fields = serializers.DictField(  # type: ignore[assignment]
        help_text="JSON values by name; `scratchpad` is a text, `entities` a list."
    )
    ttl_seconds = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Lifetime of all fields after each use; by default a day.",
    )


class FieldsNamed(PalaceRequest):
    fields = serializers.ListField(  # type: ignore[assignment]
        child=ExactText(), required=False, allow_null=True, default=None
    )


class FieldsShown(Shape):
    conversation_id = serializers.CharField()
    fields = serializers.DictField(  # type: ignore[assignment]
        help_text="By name; empty if there are none."
    )


class FieldsDeleted(Shape):
    deleted = serializers.IntegerField(help_text="The number of deleted fields.")


NAMES = OpenApiParameter(
    "fields",
    OpenApiTypes.STR,
    many=True,
    description="Only these; by default all. Alternatively send a body `{fields: […]}`.",
)


class WorkingMemoryView(WorkingMemoryApiView):
    @extend_schema(tags=TAG, parameters=[PalaceRequest], responses={200: FieldsShown})
    def get(self, request: Request, conversation_id: str) -> Response:
        """Get all fields of a conversation; this renews their expiry."""
        return _shown(self.memory.conversation(conversation_id, user_id=self.user()))

    @extend_schema(
        tags=TAG, parameters=[PalaceRequest], request=FieldsPut, responses={200: FieldsShown}
    )
    def put(self, request: Request, conversation_id: str) -> Response:
        """Set these fields, leave the others, and return all; this renews their expiry.

        413 where all together would be larger than 64 KB: then nothing is set.
        """
        params = self.read(FieldsPut)
        conversation = self.memory.conversation(conversation_id, user_id=self.user(params))
        conversation.put(params["fields"], ttl_seconds=params["ttl_seconds"])
        return _shown(conversation)

    @extend_schema(
        tags=TAG, parameters=[PalaceRequest, NAMES], request=None, responses={200: FieldsDeleted}
    )
    def delete(self, request: Request, conversation_id: str) -> Response:
        """Delete these fields, or all of the conversation."""
        params = self.read(FieldsNamed)
        conversation = self.memory.conversation(conversation_id, user_id=self.user(params))
        return Response({"deleted": conversation.delete(self._names(params))})

    def _names(self, params: dict[str, Any]) -> list[str] | None:
        in_address = self.request.query_params.getlist("fields")
        if params["fields"] is None and not in_address:
            return None
        return [*(params["fields"] or ()), *in_address]


def _shown(conversation: ConversationMemory) -> Response:
    return Response({"conversation_id": conversation.conversation_id, "fields": conversation.get()})

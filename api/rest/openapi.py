"""The OpenAPI schema of the REST API, and its reference page.

Generators make the names of functions from those of operations. A list and an item have addresses
of one shape, so names made of addresses would be numbered. Examples are bodies as they can be
sent, by name of operation; and answers as they came, recorded by tests/api/test_answer_examples.py.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from api.rest import base
from api.rest.base import SAFE, ApiView
from api.rest.problems import MEDIA_TYPE

Direction = Literal["request", "response"]
ANSWERS = Path(__file__).with_name("answer_examples.json")
METHODS = ("get", "post", "put", "patch", "delete")
OPERATION_NAMES = {
    "POST /turns": "add_turns",
    "POST /recall": "recall",
    "POST /search": "search",
    "DELETE /sessions/{session_id}": "delete_session",
    "DELETE /users/{user_id}": "delete_user",
    "GET /users/{user_id}/memories": "list_user_memories",
    "GET /v1/memories/": "list_memories",
    "POST /v1/memories/": "add_memories",
    "DELETE /v1/memories/": "delete_memories",
    "GET /v1/memories/{memory_id}/": "get_memory",
    "PUT /v1/memories/{memory_id}/": "update_memory",
    "DELETE /v1/memories/{memory_id}/": "delete_memory",
    "GET /v1/memories/{memory_id}/history/": "get_memory_history",
    "GET /v1/memories/search/": "search_memories_by_url",
    "POST /v1/memories/search/": "search_memories",
    "POST /v1/reset/": "reset",
    "GET /v1/entities/": "list_entities",
    "POST /v1/entities/": "list_entities_in_scope",
    "GET /v1/entities/{name}/relations/": "list_relations",
    "GET /v1/entities/{name}/timeline/": "get_timeline",
    "GET /v1/wings/": "list_wings",
    "GET /v1/wings/{uuid}/": "get_wing",
    "PATCH /v1/wings/{uuid}/": "update_wing",
    "DELETE /v1/wings/{uuid}/": "trash_wing",
    "POST /v1/wings/{uuid}/merge/": "merge_wing",
    "GET /v1/wings/{uuid}/rooms/": "list_rooms",
    "GET /v1/rooms/{uuid}/": "get_room",
    "DELETE /v1/rooms/{uuid}/": "trash_room",
    "POST /v1/rooms/{uuid}/move/": "move_room",
    "GET /v1/rooms/{uuid}/closets/": "list_closets",
    "GET /v1/rooms/{uuid}/drawers/": "list_room_drawers",
    "GET /v1/closets/{uuid}/": "get_closet",
    "DELETE /v1/closets/{uuid}/": "trash_closet",
    "GET /v1/drawers/": "list_drawers",
    "GET /v1/drawers/by-pointer/": "get_drawer_by_pointer",
    "GET /v1/drawers/{uuid}/": "get_drawer",
    "DELETE /v1/drawers/{uuid}/": "trash_drawer",
    "POST /v1/drawers/move/": "move_drawers",
    "POST /v1/drawers/trash/": "trash_drawers",
    "GET /v1/trash/": "list_trash",
    "GET /v1/trash/{uuid}/": "get_trashed_drawer",
    "DELETE /v1/trash/{uuid}/": "purge_trashed_drawer",
    "POST /v1/trash/restore/": "restore_drawers",
    "POST /v1/trash/empty/": "empty_trash",
    "GET /v1/recollections/": "list_recalls",
    "GET /v1/recollections/{uuid}/": "get_recall_trace",
    "GET /v1/activity/": "list_activity",
    "GET /v1/usage/": "get_usage",
    "GET /v1/settings/": "get_settings",
    "PATCH /v1/settings/": "update_settings",
    "GET /v1/palaces/": "list_palaces",
    "POST /v1/conversations/": "file_conversation",
    "GET /v1/export": "export_palace",
    "GET /v1/webhooks/": "list_webhooks",
    "POST /v1/webhooks/": "create_webhook",
    "GET /v1/webhooks/{uuid}/": "get_webhook",
    "PATCH /v1/webhooks/{uuid}/": "update_webhook",
    "DELETE /v1/webhooks/{uuid}/": "delete_webhook",
    "POST /v1/webhooks/{uuid}/test/": "test_webhook",
    "POST /v1/webhooks/{uuid}/secret/": "replace_webhook_secret",
    "GET /v1/webhooks/{uuid}/deliveries/": "list_webhook_deliveries",
    "GET /working-memory/{conversation_id}": "get_working_memory",
    "PUT /working-memory/{conversation_id}": "set_working_memory",
    "DELETE /working-memory/{conversation_id}": "delete_working_memory",
    "GET /namespaces/{kind}/{name}/entries": "list_entries",
    "GET /namespaces/{kind}/{name}/entries/{key}": "get_entry",
    "PUT /namespaces/{kind}/{name}/entries/{key}": "put_entry",
    "DELETE /namespaces/{kind}/{name}/entries/{key}": "delete_entry",
    "POST /namespaces/{kind}/{name}/search": "search_entries",
    "GET /namespaces/{kind}/{name}/inventory": "get_inventory",
    "POST /episodic/store": "store_episode",
    "POST /episodic/search": "search_episodes",
    "GET /episodic/{conversation_id}": "list_episodes",
    "GET /ledger/{conversation_id}": "get_ledger",
    "POST /ledger/{conversation_id}/check": "check_item",
    "POST /ledger/{conversation_id}/mark": "mark_item",
    "POST /ledger/{conversation_id}/evict": "evict_item",
    "POST /v1/chat/completions": "create_chat_completion",
    "POST /v1/responses": "create_response",
    "POST /v1/embeddings": "create_embeddings",
    "GET /v1/models": "list_models",
    "GET /v1/models/{name}": "get_model",
}
# Ids in the examples.
A_WING = "6a1c5e0e-3a52-4d0e-9c0f-0b6f0f4f9a01"
A_DRAWER = "6a1c5e0e-3a52-4d0e-9c0f-0b6f0f4f9a02"
A_BATCH = 1_778_232_600_000_000  # 2026-05-08 09:30 UTC.
EXAMPLES: dict[str, dict[str, Any]] = {
    "add_turns": {
        "session_id": "monday",
        "user_id": "ada",
        "messages": [
            {"role": "user", "content": "I just moved to Lisbon."},
            {"role": "assistant", "content": "How do you like it?"},
        ],
    },
    "file_conversation": {
        "source": "claude-code",
        "conversation_id": "2f1c9a30-7c1e-4a55-9d52-3f0c2a6be001",
        "project": "/home/ada/tides",
        "messages": [
            {
                "id": "m1",
                "role": "user",
                "content": "We keep the tide tables in Postgres.",
                "said_at": "2026-05-08T09:30:00Z",
            }
        ],
    },
    "recall": {"query": "Where does Ada live?", "user_id": "ada", "max_tokens": 512},
    "search": {"query": "Lisbon", "user_id": "ada", "limit": 5},
    "add_memories": {
        "messages": [{"role": "user", "content": "I am allergic to walnuts."}],
        "user_id": "ada",
    },
    "search_memories": {"query": "What can she not eat?", "user_id": "ada", "limit": 3},
    "update_memory": {"text": "Allergic to walnuts and hazelnuts"},
    "list_entities_in_scope": {"user_id": "ada"},
    "update_wing": {"name": "Family", "aliases": ["relatives"]},
    "move_room": {"wing_name": "Harbour"},
    "move_drawers": {"drawers": [A_DRAWER], "wing_name": "Harbour"},
    "trash_drawers": {"drawers": [A_DRAWER]},
    "restore_drawers": {"drawers": [A_DRAWER]},
    "empty_trash": {"up_to": A_BATCH},
    "merge_wing": {"into": A_WING},
    "update_settings": {"top_k": 8, "time_zone": "Europe/Lisbon"},
    "create_webhook": {"url": "https://example.org/hook", "events": ["fact.changed"]},
    "update_webhook": {"enabled": False},
    "set_working_memory": {"fields": {"step": "choosing a lens"}},
    "put_entry": {"value": "The tripod is in the blue cupboard."},
    "search_entries": {"query": "tripod"},
    "store_episode": {
        "conversation_id": "monday",
        "summary": "Ada moved to Lisbon and looks for a flat.",
    },
    "search_episodes": {"query": "moving house"},
    "mark_item": {"item": "skill:geology", "value": "read"},
    "check_item": {"item": "skill:geology"},
    "evict_item": {"item": "skill:geology"},
    "create_chat_completion": {
        "model": "loci",
        "messages": [{"role": "user", "content": "Which lens did Nora recommend?"}],
        "user": "ada",
    },
    "create_response": {"model": "loci", "input": "Which lens did Nora recommend?", "user": "ada"},
    "create_embeddings": {"model": "loci", "input": "The tide tables are in Postgres."},
}


class ProblemShown(serializers.Serializer[Any]):
    """RFC 9457. `code` is stable; `detail` is for people."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    errors = serializers.DictField(  # type: ignore[assignment]
        required=False, help_text="By field, where fields were wrong."
    )


ALWAYS = {
    "400": "The request is invalid; `detail` says what is wrong.",
    "401": "The key is missing, unknown, expired or revoked.",
    "403": "The key lacks the scope, or is for another palace.",
    "404": "Not found for this key.",
    "405": "The method is not allowed here.",
    "406": "Only JSON is available here.",
    "429": "Too many requests; `Retry-After` says when to retry.",
    "503": "The database, Redis or a model does not respond; `Retry-After` says when to retry.",
}


OF_BODIES = {
    "413": "The body is too large.",
    "415": "The body must be JSON, with the matching `Content-Type`.",
}


OF_WRITES = {
    "409": "It conflicts with the current state or a running request.",
    "412": "It was changed since it was read (`If-Match`).",
    "422": "The `Idempotency-Key` was used for another request.",
}


KEY_PARAMETER = OpenApiParameter(
    base.IDEMPOTENCY_KEY,
    str,
    OpenApiParameter.HEADER,
    description="Your own key. A request repeated with the same key is not executed "
    "again; it gets its first response, for 24 hours.",
)


class Schema(AutoSchema):
    def get_operation_id(self) -> str:
        return OPERATION_NAMES[f"{self.method} {self.path}"]

    def get_examples(self) -> list[OpenApiExample]:
        body = EXAMPLES.get(self.get_operation_id())
        return [OpenApiExample("A request", value=body, request_only=True)] if body else []

    def get_override_parameters(self) -> list[Any]:
        return [KEY_PARAMETER] if self._writes() else []

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        answers = super()._get_response_bodies(direction)
        problems = dict(ALWAYS)
        if self.method not in SAFE:
            problems |= OF_BODIES
        if self._writes():
            problems |= OF_WRITES
        for status, said in problems.items():
            problem = OpenApiResponse(ProblemShown, description=said)
            answers.setdefault(
                status,
                self._get_response_for_code(problem, status, [MEDIA_TYPE], direction),  # type: ignore[no-untyped-call]
            )
        return dict(answers)

    def _writes(self) -> bool:
        return self.method not in SAFE and not (
            isinstance(self.view, ApiView) and self.view.only_reads
        )


def only_ours(endpoints: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """For SPECTACULAR_SETTINGS: limit the schema to the API's URLs."""
    return [each for each in endpoints if issubclass(each[3].cls, ApiView)]


def with_answers(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """For SPECTACULAR_SETTINGS: add the recorded answers, which are by name and status."""
    recorded = json.loads(ANSWERS.read_text(encoding="utf-8"))
    for methods in result["paths"].values():
        for operation in methods.values():
            for status, answer in recorded.get(operation["operationId"], {}).items():
                media = operation["responses"][status]["content"]["application/json"]
                media["examples"] = {"AnAnswer": {"value": answer, "summary": "An answer"}}
    return result


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    required: bool
    said: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """
    Attributes:
        sent: Fields of the body; `answered` those of what comes back where all is well.
        answers: Statuses, each with a sentence.
    """

    id: str
    method: str
    path: str
    title: str
    said: str
    parameters: tuple[Field, ...]
    sent: tuple[Field, ...]
    status: str
    answered: tuple[Field, ...]


@require_safe
def api_reference(request: HttpRequest) -> HttpResponse:
    return render(request, "palace/api_reference.html", {"groups": operations_by_group()})


# No form: to a POST the answer is that there is none, not that a token of a form is missing.
@csrf_exempt
@require_safe
def api_schema(request: HttpRequest) -> HttpResponse:
    """The schema, which is the same for everybody."""
    name = {"Content-Disposition": 'inline; filename="Loci.json"'}
    return HttpResponse(_schema_as_json(), OpenApiJsonRenderer.media_type, headers=name)


@cache
def _schema_as_json() -> bytes:
    """Cached: writing it takes a second of a processor, and anybody may ask for it."""
    written: bytes = OpenApiJsonRenderer().render(_schema(), renderer_context={})
    return written


def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return schema


@cache
def operations_by_group() -> dict[str, list[Operation]]:
    """All operations of the schema, by their tag."""
    schema = _schema()
    groups: defaultdict[str, list[Operation]] = defaultdict(list)
    for path, methods in schema["paths"].items():
        for method in METHODS:
            if operation := methods.get(method):
                groups[operation["tags"][0]].append(_operation(schema, path, method, operation))
    return dict(groups)


def _operation(
    schema: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]
) -> Operation:
    title, _, said = operation.get("description", "").partition("\n\n")
    status = min(operation["responses"])
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        title=title,
        said=said,
        parameters=tuple(_parameters(operation)),
        sent=tuple(_fields(schema, operation.get("requestBody", {}))),
        status=status,
        answered=tuple(_fields(schema, operation["responses"][status])),
    )


def _parameters(operation: Mapping[str, Any]) -> Iterator[Field]:
    for each in operation.get("parameters", ()):
        yield Field(
            each["name"],
            _type(each["schema"]),
            each.get("required", False),
            each.get("description", ""),
            each["in"],
        )


def _fields(schema: Mapping[str, Any], holder: Mapping[str, Any]) -> Iterator[Field]:
    for content in holder.get("content", {}).values():
        shape = _resolved(schema, content.get("schema", {}))
        needed = shape.get("required", ())
        for name, of in shape.get("properties", {}).items():
            yield Field(name, _type(of), name in needed, of.get("description", ""))


def _resolved(schema: Mapping[str, Any], shape: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in shape:
        found: Mapping[str, Any] = schema["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]]
        return found
    return shape


def _type(shape: Mapping[str, Any]) -> str:
    if "$ref" in shape:
        return str(shape["$ref"].rsplit("/", 1)[1])
    if "allOf" in shape or "oneOf" in shape:
        return " or ".join(_type(each) for each in shape.get("allOf", shape.get("oneOf", ())))
    kind = shape.get("type", "any")
    named = " or ".join(kind) if isinstance(kind, list) else kind
    if "array" in named:
        return f"list of {_type(shape.get('items', {}))}"
    return f"{named} ({shape['format']})" if "format" in shape else named

"""The OpenAPI schema of the REST API, and its reference page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from api.rest import idempotency
from api.rest.base import SAFE, ApiView
from api.rest.examples import EXAMPLES
from api.rest.operation_names import OPERATION_NAMES
from api.rest.problems import MEDIA_TYPE

Direction = Literal["request", "response"]
METHODS = ("get", "post", "put", "patch", "delete")


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
    idempotency.HEADER,
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


@cache
def operations_by_group() -> dict[str, list[Operation]]:
    """All operations of the schema, by their tag."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
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

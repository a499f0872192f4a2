"""The API reference page, generated from the schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

METHODS = ("get", "post", "put", "patch", "delete")


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
    return render(request, "palace/api_reference.html", {"groups": _groups()})


@cache
def _groups() -> dict[str, list[Operation]]:
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

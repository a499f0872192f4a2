"""Unknown fields: a request with a name that its endpoint does not document is refused.

Ignored, it would widen a search, or delete more than was meant, and nobody would notice. What an
endpoint takes is what its `extend_schema` says, so the reference cannot differ from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.views import APIView

from api.rest.problems import Problem

MOST_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Documented:
    """The names that an endpoint takes in the query string and in the body."""

    in_query: frozenset[str]
    in_body: frozenset[str]


def refuse_unknown(view: APIView, request: Request) -> None:
    """Check the names of the query string, and those of the body's outermost object.

    A null in the body says nothing, and passes under any name: many clients send all their fields.

    Raises:
        Problem: 400, one is unknown; the sentence says which ones there are.
        APIException: the body cannot be read.
    """
    # The type checker takes a class for nothing that has a hash.
    kind: Any = type(view)
    documented = _documented(kind, str(request.method))
    if documented is None:
        return
    sent = set(request.query_params)
    wrong = dict(_sentences(sent - documented.in_query, documented, request, in_body=False))
    if request.method not in ("GET", "HEAD") and isinstance(request.data, Mapping):
        sent = {name for name, value in request.data.items() if value is not None}
        wrong |= _sentences(sent - documented.in_body, documented, request, in_body=True)
    if wrong:
        errors = {name: [sentence] for name, sentence in wrong.items()}
        raise Problem(400, "unknown_field", next(iter(wrong.values())), errors=errors)


@cache
def _documented(view: type[APIView], method: str) -> Documented | None:
    """None where the view has no such method, which it answers itself."""
    name = "get" if method == "HEAD" else method.lower()
    # Where `extend_schema` leaves it.
    annotated = getattr(getattr(view, name, None), "kwargs", None)
    if annotated is None:
        return None
    schema: Any = annotated["schema"]()
    schema.view, schema.method = view(request=None, kwargs={}), name.upper()
    body = None if name == "get" else schema.get_request_serializer()
    in_query = frozenset(_names(schema.get_override_parameters()))
    return Documented(in_query, frozenset(body().fields if body else ()))


def _names(parameters: Iterable[Any]) -> Iterator[str]:
    for parameter in parameters:
        if not isinstance(parameter, OpenApiParameter):
            yield from parameter().fields
        elif parameter.location == OpenApiParameter.QUERY:
            yield parameter.name


def _sentences(
    unknown: set[str], documented: Documented, request: Request, *, in_body: bool
) -> Iterator[tuple[str, str]]:
    endpoint = f"{request.method} {request.path}"
    known = documented.in_body if in_body else documented.in_query
    elsewhere = documented.in_query if in_body else documented.in_body
    here, there = ("body", "query string") if in_body else ("query string", "body")
    takes = f"It takes {', '.join(sorted(known))}." if known else "It takes none."
    for name in sorted(unknown):
        shown = name if len(name) <= MOST_SHOWN_CHARS else f"{name[:MOST_SHOWN_CHARS]}…"
        if name in elsewhere:
            yield name, f"{endpoint} takes “{shown}” in the {there}, not in the {here}."
        else:
            yield name, f"{endpoint} knows no “{shown}” in the {here}. {takes}"

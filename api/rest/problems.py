"""Errors as RFC 9457 problem JSON, with a sentence and a stable code."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import redis
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponseBase, JsonResponse
from psycopg_pool import PoolTimeout, TooManyRequests
from rest_framework import exceptions
from rest_framework.response import Response

from language.errors import (
    EmbeddingMismatch,
    FactConflict,
    NamespaceFull,
    NoSuchFact,
    NotItsOwn,
    PalaceError,
    QuotaExceeded,
    StorageFull,
    TooMuch,
    VectorStoreAway,
    WorkingMemoryAway,
)
from llm.database_writes import is_disk_full, is_locked, sqlstate_of
from llm.errors import LLMError
from llm.request_admission import TooBusy
from palace.models import Palace
from palace.sdk import EmbeddingError, NotFoundError, VectorStoreError, WrongPalace

logger = logging.getLogger(__name__)

# What PostgreSQL says of a write to a database that only reads, such as a former primary.
READ_ONLY = "25006"
MEDIA_TYPE = "application/problem+json"
LATER = {"Retry-After": "5"}
# Somebody has to make space first.
MUCH_LATER = {"Retry-After": "60"}

# Other errors are a 400: bad input.
_STATUS: dict[type[Exception], int] = {
    NoSuchFact: 404,
    NotFoundError: 404,
    QuotaExceeded: 507,
    StorageFull: 507,
    FactConflict: 409,
    EmbeddingMismatch: 503,
    TooMuch: 413,
    WorkingMemoryAway: 503,
    NamespaceFull: 409,
    NotItsOwn: 403,
    WrongPalace: 403,
    VectorStoreAway: 503,
}
_COME_AGAIN = frozenset({"locked", "too_busy"})
PALACE_DELETED = "This palace was deleted while the request was under way; nothing of it is left."
NOT_JSON = "The body is JSON: send it with the header “Content-Type: application/json”."
NOT_FOUND = "There is nothing here for this key. Check the address and the id."


class Problem(exceptions.APIException):
    """Raise it to respond with a problem.

    Args:
        status: As HTTP has it.
        code: Stable, for programs.
        detail: A sentence or two: what was wrong, and what to do.
        errors: By field, where fields were wrong.
        headers: To answer with.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail, code)
        self.status_code = status
        self.code = code
        self.errors = errors
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """`type`, `title`, `status`, `detail` and `code`; `errors` where fields were wrong."""
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "detail": str(self.detail),
            "code": self.code,
        }
        return {**body, "errors": self.errors} if self.errors else body


def not_found() -> Problem:
    return Problem(404, "not_found", NOT_FOUND)


def handle(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """The exception handler of REST_FRAMEWORK: known errors become responses, others propagate."""
    problem = problem_of(error)
    if problem is None:
        return None
    response = Response(problem.body(), problem.status_code, headers=problem.headers)
    response.content_type = MEDIA_TYPE
    note(problem, response)
    return response


def as_json(problem: Problem) -> JsonResponse:
    """A problem as a response, outside REST framework's views."""
    return response_to(problem, problem.body(), MEDIA_TYPE)


def response_to(
    problem: Problem, body: Mapping[str, Any], media_type: str = "application/json"
) -> JsonResponse:
    """A response with the status and headers of a problem."""
    response = JsonResponse(
        body, status=problem.status_code, headers=problem.headers, content_type=media_type
    )
    note(problem, response)
    return response


def note(problem: Problem, response: HttpResponseBase) -> None:
    """Have Django log no error of the server where a problem only asks to come again.

    The log of requests has it.
    """
    if problem.code in _COME_AGAIN:
        response._has_been_logged = True  # type: ignore[attr-defined]


def problem_of(error: Exception) -> Problem | None:
    if isinstance(error, Problem):
        return error
    if isinstance(error, Http404):
        return not_found()
    if isinstance(error, PermissionDenied):
        return Problem(403, "not_allowed", "This key may not do that.")
    if isinstance(error, RequestDataTooBig):
        return Problem(413, "too_large", "The request is too large. Send less at once.")
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    if isinstance(error, VectorStoreError | EmbeddingError) and isinstance(
        error.__cause__, Exception
    ):
        return _of_service(error.__cause__)
    if isinstance(error, PalaceError | Palace.DoesNotExist):
        return _of_palace(error)
    return _of_service(error)


def _of_palace(error: PalaceError | Palace.DoesNotExist) -> Problem:
    if isinstance(error, Palace.DoesNotExist):
        return Problem(410, "palace_deleted", PALACE_DELETED)
    status = _status_of(error)
    headers = MUCH_LATER if isinstance(error, StorageFull) else LATER if status == 503 else None
    return Problem(status, error.code, str(error), headers=headers)


def _status_of(error: PalaceError) -> int:
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return _STATUS[kind]
    return 400


def _of_service(error: Exception) -> Problem | None:
    """A service that Loci needs does not respond."""
    if isinstance(error, VectorStoreAway):
        logger.error("The vector store at %s does not respond: %s", error.where, error)
        return _of_palace(error)
    if isinstance(error, LLMError):
        return Problem(503, "model_unavailable", str(error), headers=LATER)
    if is_disk_full(error):
        logger.error("Nothing more can be stored: %s", error)
        return _of_palace(StorageFull())
    if isinstance(error, redis.RedisError):
        logger.error("Redis does not respond, or does not write: %s", error)
        said = "The short-term store (Redis) is down or full. Try again in a moment."
        return Problem(503, "redis_unavailable", said, headers=LATER)
    if isinstance(error, TooBusy) or isinstance(error.__cause__, PoolTimeout | TooManyRequests):
        said = "Too many requests wait already. Send this one again in a moment."
        return Problem(503, "too_busy", said, headers=LATER)
    if is_locked(error):
        said = "What this changes is locked, such as for a restore. Send it again in a moment."
        return Problem(503, "locked", said, headers=LATER)
    if isinstance(error, OperationalError | InterfaceError) or sqlstate_of(error) == READ_ONLY:
        logger.error("The database does not respond: %s", error)
        said = "The database does not respond. Try again in a moment."
        return Problem(503, "database_unavailable", said, headers=LATER)
    return None


def _of_framework(error: exceptions.APIException) -> Problem:
    headers = {}
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if isinstance(error, exceptions.ValidationError):
        return Problem(400, "bad_input", _sentence(error.detail), errors=_by_field(error.detail))
    if isinstance(error, exceptions.ParseError):
        return Problem(400, "bad_json", str(error.detail))
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        return Problem(401, "not_authenticated", str(error.detail), headers=headers)
    if isinstance(error, exceptions.UnsupportedMediaType):
        return Problem(415, error.default_code, NOT_JSON)
    return Problem(error.status_code, str(error.get_codes()), str(error.detail), headers=headers)


def _by_field(detail: Any) -> Mapping[str, Any] | None:
    return detail if isinstance(detail, Mapping) else None


def _sentence(detail: Any, at: str = "") -> str:
    """The first error as a sentence, with its field."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            if inner:
                outer = at if name == "non_field_errors" else f"{at}.{name}" if at else str(name)
                return _sentence(inner, outer)
    if isinstance(detail, list):
        for place, inner in enumerate(detail):
            if inner:
                nested = isinstance(inner, Mapping | list)
                return _sentence(inner, f"{at}[{place}]" if nested and at else at)
    return f"{at}: {detail}" if at else str(detail)

"""The OpenAPI schema: every operation with all its responses, including problems."""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from api.rest import idempotency
from api.rest.base import SAFE, ApiView
from api.rest.problems import MEDIA_TYPE

Direction = Literal["request", "response"]


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

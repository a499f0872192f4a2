"""The schema as OpenAPI: every operation with all its answers, problems among them."""

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
    "400": "The request cannot be understood; the sentence says what is wrong.",
    "401": "No key, or one that is not known, has expired or was revoked.",
    "403": "The key may not do that, or is for another palace.",
    "404": "Nothing is there for this key.",
    "405": "Nothing here is done by this method.",
    "406": "Only JSON is answered here.",
    "429": "More requests than the key may send; `Retry-After` says when to go on.",
    "503": "The database, Redis or a model does not answer; `Retry-After` says when to ask again.",
}
OF_BODIES = {
    "413": "The body is too large.",
    "415": "A body is JSON, and says so in `Content-Type`.",
}
OF_WRITES = {
    "409": "It is under way already, or something else is in its place.",
    "412": "It was changed since it was read (`If-Match`).",
    "422": "The `Idempotency-Key` was used for another request.",
}
KEY_PARAMETER = OpenApiParameter(
    idempotency.HEADER,
    str,
    OpenApiParameter.HEADER,
    description="A text of your own. Sent again with the same text, the request is not done "
    "again: its first answer is given once more, for 24 hours.",
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
    """For SPECTACULAR_SETTINGS: the schema tells of the API's addresses, and no others."""
    return [each for each in endpoints if issubclass(each[3].cls, ApiView)]

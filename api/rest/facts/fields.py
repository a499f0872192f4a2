"""Request fields of the fact API: ids, moments, messages and filters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from api.rest.memory_service.shapes import MOST_MESSAGES, ExactText, Shape
from api.rest.parsing import read_json
from language.transcripts import ROLES
from palace.knowledge.facts.filters import read_moment
from palace.sdk.arguments import DEFAULT_RESULTS, MOST_RESULTS
from palace.sdk.operations import CallScope
from settings_app.api_keys import ApiKey

A_FILTER = '{"field": "tags", "operator": "eq", "value": "work"}'
A_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"type": "string", "enum": [*ROLES]},
        "content": {"type": "string", "description": "Stored verbatim."},
        "name": {"type": ["string", "null"], "description": "Who speaks."},
    },
}


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "description": "What the user says."},
            {"type": "array", "items": A_MESSAGE, "maxItems": MOST_MESSAGES},
        ]
    }
)
class Messages(serializers.Field[Any, Any, Any, Any]):
    """A text, or a list of messages; the SDK validates each message."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list) and len(data) > MOST_MESSAGES:
            raise serializers.ValidationError(
                f"There are up to {MOST_MESSAGES} messages in a request. Send them in several."
            )
        return data


@extend_schema_field({"type": "string", "examples": ["2024-01-31T09:30:00Z", "2024-01-31"]})
class Moment(serializers.Field[datetime, Any, str, Any]):
    """An ISO 8601 time or date, in UTC unless it has a zone."""

    def to_internal_value(self, data: Any) -> datetime:
        moment = read_moment(data)
        if moment is None:
            raise serializers.ValidationError(
                "This is not a time; write one such as 2024-01-31T09:30:00Z or 2024-01-31."
            )
        return moment


@extend_schema_field({"type": "string", "examples": [A_FILTER]})
class FilterText(serializers.Field[Any, Any, str, Any]):
    """A filter as JSON, for query strings."""

    def to_internal_value(self, data: str) -> Any:
        return read_json(data.encode(errors="surrogatepass"), "filters")


def moment(said: str) -> Moment:
    return Moment(required=False, allow_null=True, default=None, help_text=said)


class Scoped(Shape):
    """The scope. At least one of the three is required, unless the key is for one palace."""

    user_id = ExactText(
        required=False,
        allow_null=True,
        default=None,
        help_text="Whose palace; by default your own.",
    )
    agent_id = ExactText(
        required=False,
        allow_null=True,
        default=None,
        help_text="Within the palace, only this agent's memories.",
    )
    run_id = ExactText(
        required=False,
        allow_null=True,
        default=None,
        help_text="Within the palace, only this conversation's memories.",
    )


class Limited(Scoped):
    limit = serializers.IntegerField(
        required=False, default=DEFAULT_RESULTS, min_value=1, max_value=MOST_RESULTS
    )


class AsOf(Limited):
    true_at = moment("What was true then, instead of now.")
    known_at = moment("What was recorded by then, whatever was learnt since.")


_IDS = ("user_id", "agent_id", "run_id")


def scope_in(params: Mapping[str, Any], key: ApiKey) -> CallScope:
    """The scope of a request; a key for one palace implies that palace.

    Raises:
        ScopeError: no id is given; WrongPalace: the key is for another palace.
    """
    return CallScope.read(*(params[name] for name in _IDS), bound_to=key.subject)


def without_scope(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in _IDS}

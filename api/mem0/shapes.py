"""Requests and answers in mem0's shapes."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from api.rest.facts.shapes import Moment
from api.rest.problems import Problem
from palace.errors import BadFilter, BadInput
from palace.recall import MOST_QUERY_CHARS
from palace.sdk import HistoryRecord, MemoryEvent, MemoryItem
from palace.sdk.arguments import MOST_RESULTS

MOST_IN_BATCH = 1000
BETWEEN_PARTS = "\n\n"
# What Loci does not do. Ignored, it would keep what was to expire, or change what was to be stored.
_REFUSED = {
    "expiration_date": "Loci's memories do not expire; leave out expiration_date, or delete them.",
    "immutable": "Loci has no immutable memories; leave out immutable.",
    "structured_data_schema": "Loci knows no structured_data_schema; leave it out.",
}
NO_TIME = "A memory's text and metadata can be changed, but not its timestamp; leave it out."
NOTHING_NEW = "Give the memory's new text, or its metadata."
# So that its rows can be counted.
LAST_PAGE = 1_000_000


class Epoch(Moment):
    """A Unix time in seconds, or what `Moment` reads."""

    def to_internal_value(self, data: Any) -> datetime:
        if isinstance(data, bool) or not isinstance(data, int | float):
            return super().to_internal_value(data)
        try:
            return datetime.fromtimestamp(data, UTC)
        except (ValueError, OverflowError, OSError):
            raise serializers.ValidationError("This is no Unix time in seconds.") from None


class Added(serializers.Serializer[Any]):
    messages = serializers.JSONField()
    metadata = serializers.DictField(required=False, allow_null=True, default=None)
    timestamp = Epoch(required=False, allow_null=True, default=None)
    infer = serializers.BooleanField(required=False, allow_null=True, default=None)


class Asked(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=MOST_QUERY_CHARS, trim_whitespace=False)
    top_k = serializers.IntegerField(default=10, min_value=1, max_value=MOST_RESULTS)
    limit = serializers.IntegerField(required=False, min_value=1, max_value=MOST_RESULTS)
    threshold = serializers.FloatField(required=False, allow_null=True, default=None)


class Paged(serializers.Serializer[Any]):
    page = serializers.IntegerField(required=False, min_value=1, max_value=LAST_PAGE)
    page_size = serializers.IntegerField(default=100, min_value=1, max_value=MOST_RESULTS)
    top_k = serializers.IntegerField(required=False, min_value=1, max_value=MOST_RESULTS)


class Rewritten(serializers.Serializer[Any]):
    text = serializers.CharField(
        trim_whitespace=False, required=False, allow_null=True, default=None
    )
    metadata = serializers.DictField(required=False, allow_null=True, default=None)


class InBatch(Rewritten):
    memory_id = serializers.CharField()


class Batch(serializers.Serializer[Any]):
    memories = serializers.ListField(child=InBatch(), max_length=MOST_IN_BATCH)


def refuse_unsupported(fields: Mapping[str, Any]) -> None:
    """
    Raises:
        Problem: 400, the request wants what Loci does not do.
    """
    for name, sentence in _REFUSED.items():
        if fields.get(name):
            raise Problem(400, "not_supported", sentence)


def messages_in(given: object) -> Any:
    """Messages as the SDK takes them: parts of text are joined, and pictures left out.

    Raises:
        BadInput: a message has no text.
    """
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list):
        return given
    return [_with_text(place, message) for place, message in enumerate(given)]


def _with_text(place: int, message: object) -> object:
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
        return message
    parts = [part for part in message["content"] if isinstance(part, Mapping)]
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    if not texts:
        raise BadInput(f"Message {place} has no text; pictures and files cannot be remembered.")
    return {**message, "content": BETWEEN_PARTS.join(texts)}


def filters_in_address(text: str) -> object:
    """Filters in a query string, as JSON or as the client writes a dictionary there.

    Raises:
        BadFilter: it is neither.
    """
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise BadFilter("filters in the address is JSON, such as {“user_id”: “ada”}.") from None


def item_of(item: MemoryItem) -> dict[str, Any]:
    """A memory, with its category as a list."""
    return {**item, "categories": [item["category"]] if item["category"] else []}


def events_of(events: Sequence[MemoryEvent]) -> list[dict[str, Any]]:
    """What changed; a repetition changes nothing."""
    return [
        {
            "id": event["id"],
            "memory": event["new_memory"] or event["old_memory"],
            "event": event["event"],
            "metadata": event["metadata"],
            **({"previous_memory": event["old_memory"]} if event["event"] == "UPDATE" else {}),
        }
        for event in events
        if event["event"] != "NONE"
    ]


def change_of(line: HistoryRecord) -> dict[str, Any]:
    return {
        "id": line["id"],
        "memory_id": line["memory_id"],
        "event": line["event"],
        "old_memory": line["old_value"],
        "new_memory": line["new_value"],
        "created_at": line["timestamp"],
        "updated_at": line["timestamp"],
    }

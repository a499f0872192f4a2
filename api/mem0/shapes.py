"""Requests and answers in mem0's format; its filters, translated to those of the fact API.

`{"user_id": "ada", "created_at": {"gte": "2024-01-01"}, "metadata": {"tag": "work"}}`, joined by
AND, OR and NOT. `*` matches any value. The scope is taken out of them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.http import QueryDict
from rest_framework import serializers

from api.rest.fact_shapes import Moment
from api.rest.parsing import ExactText
from api.rest.problems import Problem
from language.errors import BadFilter, BadInput
from palace.knowledge.facts.filters import quoted
from palace.recall import MOST_QUERY_CHARS
from palace.sdk import HistoryRecord, MemoryEvent, MemoryItem
from palace.sdk.arguments import MOST_RESULTS

MOST_IN_BATCH = 1000
BETWEEN_PARTS = "\n\n"
# Unsupported fields. To ignore them would keep what must expire, or change what is stored.
_REFUSED = {
    "expiration_date": "Loci's memories do not expire; leave out expiration_date, or delete them.",
    "immutable": "Loci has no immutable memories; leave out immutable.",
    "structured_data_schema": "Loci knows no structured_data_schema; leave it out.",
}
NO_TIME = "A memory's text and metadata can be changed, but not its timestamp; leave it out."
NOTHING_NEW = "Give the memory's new text, or its metadata."
# So that its rows can be counted.
LAST_PAGE = 1_000_000
IDS = ("user_id", "agent_id", "run_id")
ANY = "*"
_CATEGORIES = "categories"
# A memory's field by mem0's name; other fields have the same name, or are keys of metadata.
_FIELDS = {_CATEGORIES: "category", "keywords": "memory"}


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
    query = ExactText(max_length=MOST_QUERY_CHARS)
    top_k = serializers.IntegerField(default=10, min_value=1, max_value=MOST_RESULTS)
    limit = serializers.IntegerField(required=False, min_value=1, max_value=MOST_RESULTS)
    threshold = serializers.FloatField(required=False, allow_null=True, default=None)


class Paged(serializers.Serializer[Any]):
    page = serializers.IntegerField(required=False, min_value=1, max_value=LAST_PAGE)
    page_size = serializers.IntegerField(default=100, min_value=1, max_value=MOST_RESULTS)
    top_k = serializers.IntegerField(required=False, min_value=1, max_value=MOST_RESULTS)


class Rewritten(serializers.Serializer[Any]):
    text = ExactText(required=False, allow_null=True, default=None)
    metadata = serializers.DictField(required=False, allow_null=True, default=None)


class InBatch(Rewritten):
    memory_id = serializers.CharField()


class Batch(serializers.Serializer[Any]):
    memories = serializers.ListField(child=InBatch(), max_length=MOST_IN_BATCH)


def refuse_unsupported(fields: Mapping[str, Any]) -> None:
    """
    Raises:
        Problem: 400, the request needs something that Loci does not support.
    """
    for name, sentence in _REFUSED.items():
        if fields.get(name):
            raise Problem(400, "not_supported", sentence)


def messages_in(given: object) -> Any:
    """Messages for the SDK: parts of text are joined, pictures omitted.

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


def fields_in_address(params: QueryDict) -> dict[str, Any]:
    """The fields of a query string, where the client repeats a list's name for each element.

    Raises:
        BadFilter: its filters cannot be read.
    """
    fields: dict[str, Any] = params.dict()
    if _CATEGORIES in params:
        fields[_CATEGORIES] = params.getlist(_CATEGORIES)
    if "filters" in params:
        fields["filters"] = _filters_in_address(fields["filters"])
    return fields


def _filters_in_address(text: str) -> object:
    """As JSON, or as the client writes a dictionary there.

    Raises:
        BadFilter: the text is neither.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise BadFilter("filters in the address is JSON, such as {“user_id”: “ada”}.") from None


def item_of(item: MemoryItem) -> dict[str, Any]:
    """A memory, with its category as a list."""
    return {**item, "categories": [item["category"]] if item["category"] else []}


def events_of(events: Sequence[MemoryEvent]) -> list[dict[str, Any]]:
    """The changes; a repetition makes none."""
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


@dataclass(slots=True)
class Filtered:
    """
    Attributes:
        scope: The ids that all results must have.
        conditions: Filters of the fact API, all of which must hold.
    """

    scope: dict[str, str] = field(default_factory=dict)
    conditions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def filters(self) -> dict[str, Any] | None:
        return {"AND": self.conditions} if self.conditions else None


def read_filters(params: Mapping[str, Any]) -> Filtered:
    """The scope and the conditions of a request.

    The ids are fields of the body or filters, but not within OR or NOT: they name a palace.

    Raises:
        BadFilter: a filter is invalid.
    """
    found = Filtered()
    outside = {name: params[name] for name in (*IDS, "app_id") if params.get(name) is not None}
    _take(found, outside)
    given = params.get("filters")
    if given is not None:
        _take(found, given)
    listed = params.get(_CATEGORIES)
    if listed is not None:
        found.conditions.append(_condition(_CATEGORIES, "in", listed))
    for name, operator in (("start_date", "gte"), ("end_date", "lte")):
        if params.get(name) is not None:
            found.conditions.append(_condition("created_at", operator, params[name]))
    return found


def _take(found: Filtered, given: object) -> None:
    """Add a filter that must hold."""
    if not isinstance(given, Mapping):
        raise BadFilter("filters is an object, such as {“user_id”: “ada”}.")
    for name, value in given.items():
        if name == "AND":
            for part in _parts(name, value):
                _take(found, part)
        elif name in IDS:
            _take_id(found, name, value)
        else:
            found.conditions += _conditions(name, value)


def _take_id(found: Filtered, name: str, value: object) -> None:
    """
    Raises:
        BadFilter: it is not one id, or differs from one given elsewhere.
    """
    if value == ANY and name != "user_id":
        return
    if not isinstance(value, str | list | Mapping):
        raise BadFilter(f"{name} is a text, not {quoted(value)}.")
    if not isinstance(value, str) or value == ANY or found.scope.get(name, value) != value:
        raise BadFilter(f"Name one {name}; several, or any, cannot be searched at once.")
    found.scope[name] = value


def _conditions(name: str, value: object) -> Iterator[dict[str, Any]]:
    """One filter, as filters of the fact API that must all hold."""
    if name in ("AND", "OR"):
        yield {name: [_all_of(part) for part in _parts(name, value)]}
    elif name == "NOT":
        parts = value if isinstance(value, list) else [value]
        yield {"NOT": _joined("OR", [_all_of(part) for part in _parts(name, parts)])}
    elif name in IDS:
        raise BadFilter(f"{name} names a palace or a part of it: write it outside of OR and NOT.")
    elif name == "metadata":
        for key, wanted in _object(name, value).items():
            yield from _compared(f"metadata.{key}", wanted)
    else:
        yield from _compared(name, value)


def _compared(name: str, value: object) -> Iterator[dict[str, Any]]:
    if value == ANY:
        yield {"NOT": {"field": _FIELDS.get(name, name), "operator": "eq", "value": None}}
    elif isinstance(value, Mapping):
        for operator, wanted in value.items():
            yield _condition(name, operator, wanted)
    elif isinstance(value, list):
        yield _condition(name, "in", value)
    else:
        yield _condition(name, "eq", value)


def _condition(name: str, operator: str, value: object) -> dict[str, Any]:
    """A memory has one category, so "contains" means "equals" for it."""
    if name == _CATEGORIES and operator == "contains":
        operator = "eq"
    return {"field": _FIELDS.get(name, name), "operator": operator, "value": value}


def _all_of(part: object) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for name, value in _object("a filter", part).items():
        found += _conditions(name, value)
    return _joined("AND", found)


def _joined(join: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if not parts:
        raise BadFilter("A filter is empty; leave it out, or write a condition.")
    return parts[0] if len(parts) == 1 else {join: list(parts)}


def _parts(name: str, value: object) -> Iterable[object]:
    if not isinstance(value, list) or not value:
        raise BadFilter(f"{name} takes a list of at least one filter.")
    return value


def _object(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadFilter(f"{name} is an object, with a value for each name.")
    return value

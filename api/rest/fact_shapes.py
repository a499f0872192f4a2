"""Requests and responses of the fact API: fields, filters, and their scope."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from api.rest.memory_shapes import MOST_MESSAGES
from api.rest.parsing import Choice, ExactText, Shape, read_json
from language.transcripts import ROLES
from palace.knowledge.facts.filters import read_moment
from palace.models import Entity, Fact, FactEvent
from palace.recall import HOPS, MOST_QUERY_CHARS
from palace.sdk.arguments import DEFAULT_RESULTS, MOST_PROMPT_CHARS, MOST_RESULTS, MOST_TEXT_CHARS
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
FILTERS = (
    "`{field, operator, value}`, or `{AND: […]}`, `{OR: […]}`, `{NOT: …}` of such; see "
    f"{settings.DOCS_PAGE.format('sdk')}."
)


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


class AddMemoriesRequest(Scoped):
    messages = Messages(help_text="A text that the user said, or a list of messages.")
    metadata = serializers.DictField(
        required=False, allow_null=True, default=None, help_text="Stored with each memory."
    )
    filters = serializers.DictField(
        required=False,
        allow_null=True,
        default=None,
        help_text=f"Judge new facts only against memories that match. {FILTERS}",
    )
    prompt = ExactText(
        required=False,
        allow_null=True,
        allow_blank=True,
        default=None,
        max_length=MOST_PROMPT_CHARS,
        help_text="Replaces our extraction prompt.",
    )
    judging_prompt = ExactText(
        required=False,
        allow_null=True,
        allow_blank=True,
        default=None,
        max_length=MOST_PROMPT_CHARS,
        help_text="Replaces our prompt for judging new facts.",
    )
    timestamp = moment("When it was said; defaults to now.")


class MemoryEventShown(Shape):
    event = serializers.ChoiceField(["ADD", "UPDATE", "DELETE", "NONE"])
    id = serializers.UUIDField(help_text="The memory's id.")
    old_memory = serializers.CharField(allow_null=True)
    new_memory = serializers.CharField(allow_null=True)
    metadata = serializers.DictField()


class MemoryEvents(Shape):
    results = MemoryEventShown(many=True)
    extraction = serializers.ChoiceField(
        ["degraded"],
        required=False,
        help_text="Present if a model failed or its answer was unusable: local rules stepped in.",
    )
    notes = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="What was degraded, in sentences; with `extraction`.",
    )


class ListRequest(AsOf):
    filters = FilterText(
        required=False, allow_null=True, default=None, help_text=f"As JSON: {FILTERS}"
    )


class _Question(Shape):
    """`query`, or `q` for short."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        query = attrs.get("query", attrs.get("q"))
        if query is None:
            raise serializers.ValidationError({"query": "This field is required."})
        return {**attrs, "query": query}


class SearchInAddress(_Question, ListRequest):
    q = ExactText(required=False, max_length=MOST_QUERY_CHARS, help_text="The search query.")
    query = ExactText(required=False, max_length=MOST_QUERY_CHARS, help_text="Alias of `q`.")


class MemorySearchRequest(AsOf):
    query = ExactText(max_length=MOST_QUERY_CHARS, help_text="The search query.")
    filters = serializers.DictField(
        required=False, allow_null=True, default=None, help_text=FILTERS
    )


class MemoryItemShown(Shape):
    id = serializers.UUIDField(help_text="Stays the same when the memory is edited.")
    memory = serializers.CharField(help_text="The whole statement.")
    hash = serializers.CharField(help_text="MD5 of `memory`.")
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(help_text="When it got this text.")
    user_id = serializers.CharField(allow_null=True)
    agent_id = serializers.CharField(allow_null=True)
    run_id = serializers.CharField(allow_null=True)
    type = serializers.ChoiceField(Fact.Type.choices)
    subject = serializers.CharField()
    predicate = serializers.CharField()
    object = serializers.CharField()
    aspect = serializers.CharField()
    stance = serializers.CharField()
    category = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    confidence = serializers.FloatField()
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)


class MemoryFound(MemoryItemShown):
    score = serializers.FloatField(help_text="(1 + similarity) / 2, from 0 to 1.")
    similarity = serializers.FloatField(help_text="The cosine, from -1 to 1.")


class MemoryItems(Shape):
    results = MemoryItemShown(many=True)


class MemoriesFound(Shape):
    results = MemoryFound(many=True)


class MemoryRewritten(Shape):
    text = ExactText(max_length=MOST_TEXT_CHARS, help_text="The new text.")


class MemoryUpdated(MemoryItemShown):
    changed = serializers.ListField(
        child=serializers.CharField(),
        help_text="The updated fields; `sources`: its source messages.",
    )
    note = serializers.CharField(allow_null=True, help_text="What could not be updated, and why.")


class WordsKept(Shape):
    drawer = serializers.UUIDField()
    pointer = serializers.CharField()
    session_id = serializers.CharField()
    why = serializers.ChoiceField(
        ["other_memory", "other_source"],
        help_text="Another memory uses it too; or it was not sent to the fact API, but came "
        "from a chat, a turn or an import.",
    )
    memories = serializers.ListField(
        child=serializers.UUIDField(), help_text="The other memories that use it."
    )


class MemoriesDeleted(Shape):
    deleted = serializers.IntegerField(help_text="The number of deleted memories.")
    kept = WordsKept(many=True, help_text="Source messages that stay, up to 100, oldest first.")
    kept_total = serializers.IntegerField(help_text="How many messages stay.")


class MemoryHistoryLine(Shape):
    id = serializers.UUIDField(help_text="The record's id.")
    memory_id = serializers.UUIDField()
    event = serializers.ChoiceField(FactEvent.Kind.values)
    old_value = serializers.CharField(allow_null=True)
    new_value = serializers.CharField(allow_null=True)
    timestamp = serializers.DateTimeField()
    is_deleted = serializers.BooleanField()
    why = serializers.CharField()
    by = serializers.CharField(help_text="sdk, mining, person …")


class EntitiesRequest(Limited):
    """All entities of a palace; with an agent or run, those of its memories."""


class GraphEntity(Shape):
    id = serializers.UUIDField()
    name = serializers.CharField()
    type = serializers.ChoiceField(Entity.Kind.choices)
    aliases = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


class GraphEntities(Shape):
    results = GraphEntity(many=True)


class _Named(Shape):
    type = Choice(
        Entity.Kind.choices,
        required=False,
        default="",
        help_text="The kind, if several entities have the name.",
    )


class RelationsRequest(_Named, AsOf):
    hops = serializers.IntegerField(
        required=False,
        default=1,
        min_value=1,
        max_value=HOPS,
        help_text="Follow the relations of what is reached, up to so many from the entity.",
    )


class TimelineRequest(_Named, Scoped):
    known_at = moment("As recorded by then.")


class GraphRelation(Shape):
    id = serializers.UUIDField(help_text="The memory that states it.")
    hops = serializers.IntegerField(help_text="How many relations away; 1 is the entity's own.")
    source = serializers.CharField()  # type: ignore[assignment]
    relation = serializers.CharField()
    target = serializers.CharField()
    memory = serializers.CharField()
    confidence = serializers.FloatField()
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)


class GraphRelations(Shape):
    entity = GraphEntity()
    results = GraphRelation(many=True)


class EntityStoryLine(Shape):
    id = serializers.UUIDField(help_text="The memory; it may have several versions.")
    memory = serializers.CharField()
    type = serializers.ChoiceField(Fact.Type.choices)
    subject = serializers.CharField()
    predicate = serializers.CharField()
    object = serializers.CharField()
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    recorded_at = serializers.DateTimeField(help_text="When it was recorded.")
    retired_at = serializers.DateTimeField(
        allow_null=True, help_text="When it became inactive; null if active."
    )
    drawers = serializers.ListField(child=serializers.UUIDField(), help_text="Its source messages.")


class EntityTimeline(Shape):
    entity = GraphEntity()
    results = EntityStoryLine(many=True)

"""Requests and responses of the memory service, how rows become them, and the ids of turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from api.rest.parsing import Choice, ExactText, Shape
from language.transcripts import ROLES
from palace.mining.pipeline import AtOnce
from palace.models import Drawer, Evidence, Fact, FactQuerySet, IdempotentWrite, Pointer
from palace.recall import (
    MOST_HITS,
    MOST_QUERY_CHARS,
    MOST_TOKENS,
    STAGES,
    Citation,
    Recollection,
    Source,
)
from palace.sdk.arguments import MOST_RESULTS

MOST_MESSAGES = 1_000
DEFAULT_MEMORIES = 1_000
DEFAULT_TOKENS = 1024
SNIPPET_CHARS = 160
NOTHING_RECALLED: dict[str, Any] = {
    "context": "",
    "citations": [],
    "tokens": 0,
    "recollection": None,
    "notes": [],
}
NOTHING_FOUND: dict[str, Any] = {"results": [], "recollection": None, "notes": []}
SOURCE = "api"
# A session is a conversation named by a program: in a turn, as the fact API's `run_id`, by MCP's
# `remember`, or through the proxy.
SESSION_SOURCES = (SOURCE, "sdk", "mcp", "proxy")
_AGAIN = UUID("4c76be0a-6a17-4f8c-9d59-6df4e2b3a9d1")


def user_field() -> serializers.CharField:
    said = "Whose palace; omitted or null, your own."
    return ExactText(required=False, allow_null=True, help_text=said)


def recollection_field() -> serializers.UUIDField:
    said = "The stored trace's id. Null if the user has no palace."
    return serializers.UUIDField(allow_null=True, help_text=said)


def notes_field() -> serializers.ListField:
    said = "What was degraded or omitted, in sentences."
    return serializers.ListField(child=serializers.CharField(), help_text=said)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "description": "The name of a recipe."},
            {
                "type": "array",
                "maxItems": len(STAGES),
                "items": {
                    "type": "object",
                    "required": ["stage"],
                    "properties": {
                        "stage": {"type": "string", "enum": list(STAGES)},
                        "on": {"type": "boolean", "default": True},
                    },
                    "additionalProperties": {"type": ["number", "boolean"]},
                },
            },
        ]
    }
)
class Recipe(serializers.Field[Any, Any, Any, Any]):
    """The name of a recipe, or a list of stages; recall checks which there are."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str | list):
            raise serializers.ValidationError("Give the name of a recipe, or a list of stages.")
        return data


class Message(Shape):
    role = Choice(ROLES)
    content = ExactText(
        allow_blank=True,
        allow_null=True,
        help_text="Stored verbatim. Null where there are calls of tools alone.",
    )
    name = ExactText(required=False, allow_blank=True, help_text="Who speaks.")


class Turns(Shape):
    session_id = ExactText(help_text="Your own id of the conversation.")
    user_id = user_field()
    messages = serializers.ListField(child=Message(), allow_empty=False, max_length=MOST_MESSAGES)
    timestamp = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it was said; defaults to now."
    )
    metadata = serializers.DictField(
        required=False, allow_null=True, help_text="Stored with each message."
    )


class TurnKept(Shape):
    id = serializers.CharField(help_text="The turn's id, as in citations.")
    session_id = serializers.CharField()
    drawers = serializers.ListField(
        child=serializers.UUIDField(), help_text="The stored messages, in order."
    )
    extraction = serializers.ChoiceField(
        ["complete", "degraded"],
        help_text="degraded: all is stored; what `notes` says was not done, or comes later.",
    )
    notes = notes_field()


ONLY_AGENT = "Who asks: what the fact API received for another agent is left out."


class RecallFields(Shape):
    query = ExactText(
        max_length=MOST_QUERY_CHARS, help_text="A question, or the message to answer."
    )
    session_id = ExactText(
        required=False,
        allow_null=True,
        help_text="Append this session's latest turns to the context.",
    )
    user_id = user_field()
    max_tokens = serializers.IntegerField(
        required=False,
        default=DEFAULT_TOKENS,
        min_value=1,
        max_value=MOST_TOKENS,
        help_text="Token budget of the context.",
    )
    top_k = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_HITS,
        help_text="Maximum number of drawers.",
    )
    recipe = Recipe(
        required=False,
        allow_null=True,
        help_text="The recall recipe: its name, or a list of stages; by default the one in your "
        "settings.",
    )
    as_of = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Ignore what was said later."
    )
    agent_id = ExactText(required=False, allow_null=True, help_text=ONLY_AGENT)


class CitationShown(Shape):
    turn_id = serializers.CharField(
        allow_null=True,
        help_text="The id from POST /turns, else the drawer's. Null if the source was deleted.",
    )
    score = serializers.FloatField(help_text="Comparable within this response only.")
    snippet = serializers.CharField(help_text="Up to 160 characters.")
    pointer = serializers.CharField(allow_null=True)
    drawer = serializers.UUIDField(allow_null=True)
    memory = serializers.UUIDField(
        allow_null=True, help_text="The fact's id, if the line is a fact."
    )


class Recalled(Shape):
    context = serializers.CharField(  # type: ignore[assignment]
        help_text="The context for a model; empty if nothing fits."
    )
    citations = CitationShown(many=True)
    tokens = serializers.IntegerField(help_text="The context's length in tokens.")
    recollection = recollection_field()
    notes = notes_field()


class SearchFields(Shape):
    query = ExactText(max_length=MOST_QUERY_CHARS, help_text="A question, or words.")
    session_id = ExactText(required=False, allow_null=True, help_text="Search only this session.")
    user_id = user_field()
    as_of = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Ignore what was said later."
    )
    agent_id = ExactText(required=False, allow_null=True, help_text=ONLY_AGENT)
    limit = serializers.IntegerField(required=False, default=10, min_value=1, max_value=MOST_HITS)


class Found(Shape):
    content = serializers.CharField(help_text="Verbatim.")
    score = serializers.FloatField(help_text="Comparable within this response only.")
    session_id = serializers.CharField()
    timestamp = serializers.DateTimeField()
    metadata = serializers.DictField()
    role = serializers.CharField()
    turn_id = serializers.CharField()
    drawer = serializers.UUIDField()
    pointer = serializers.CharField()
    signals = serializers.DictField(
        child=serializers.FloatField(), help_text="Contributions to the score; they add up to it."
    )
    outdated_since = serializers.DateTimeField(
        allow_null=True, help_text="When a fact that it states ended, or was corrected."
    )


class Results(Shape):
    results = Found(many=True)
    recollection = recollection_field()
    notes = notes_field()


class MemoriesRequest(Shape):
    limit = serializers.IntegerField(
        required=False, default=DEFAULT_MEMORIES, min_value=1, max_value=MOST_RESULTS
    )
    active = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Only active facts, or only inactive ones.",
    )


class MemoryShown(Shape):
    id = serializers.UUIDField(help_text="The version's id.")
    memory = serializers.UUIDField(help_text="Shared by all versions of a memory.")
    type = serializers.CharField()
    subject = serializers.CharField()
    key = serializers.CharField(help_text="The predicate.")
    value = serializers.CharField(help_text="The object.")
    aspect = serializers.CharField(allow_null=True)
    stance = serializers.CharField(allow_null=True)
    text = serializers.CharField()
    confidence = serializers.FloatField()
    source_session = serializers.CharField(allow_null=True)
    source_turn = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    supersedes = serializers.UUIDField(allow_null=True, help_text="The previous version.")
    active = serializers.BooleanField()


class Memories(Shape):
    memories = MemoryShown(many=True)
    total = serializers.IntegerField()


def kept(turn: str, session: str, done: AtOnce) -> dict[str, Any]:
    return {
        "id": turn,
        "session_id": session,
        "drawers": [drawer.uuid for drawer in done.drawers],
        "extraction": "degraded" if done.notes else "complete",
        "notes": list(done.notes),
    }


def recalled(recollection: Recollection) -> dict[str, Any]:
    drawers = _cited_drawers(recollection)
    return {
        "context": recollection.context,
        "citations": [_citation(each, recollection, drawers) for each in recollection.citations],
        "tokens": recollection.context_tokens,
        "recollection": recollection.uuid,
        "notes": list(recollection.notes),
    }


def _cited_drawers(recollection: Recollection) -> dict[Pointer, Drawer | Source]:
    cited = {fact.source.pointer: fact.source for fact in recollection.facts if fact.source}
    return {**cited, **{hit.pointer: hit.drawer for hit in recollection.hits}}


def _citation(
    citation: Citation, recollection: Recollection, drawers: Mapping[Pointer, Drawer | Source]
) -> dict[str, Any]:
    drawer = drawers.get(citation.pointer) if citation.pointer else None
    score, text = _score_and_text(citation, recollection)
    return {
        "turn_id": turn_of(drawer) if drawer else None,
        "score": round(score, 6),
        "snippet": text[:SNIPPET_CHARS],
        "pointer": str(citation.pointer) if citation.pointer else None,
        "drawer": drawer.uuid if drawer else None,
        "memory": citation.memory,
    }


def _score_and_text(citation: Citation, recollection: Recollection) -> tuple[float, str]:
    if citation.memory is not None:
        for fact in recollection.facts:
            if fact.memory == citation.memory:
                return fact.score, fact.text
    for hit in recollection.hits:
        if hit.pointer == citation.pointer:
            return hit.score, hit.drawer.text[slice(*hit.passage)]
    return 0.0, ""


def found(recollection: Recollection) -> dict[str, Any]:
    results = [
        {
            "content": hit.drawer.text,
            "score": round(hit.score, 6),
            "session_id": hit.drawer.conversation,
            "timestamp": hit.drawer.said_at,
            "metadata": hit.drawer.metadata or {},
            "role": hit.drawer.role,
            "turn_id": turn_of(hit.drawer),
            "drawer": hit.drawer.uuid,
            "pointer": str(hit.pointer),
            "signals": {name: round(share, 6) for name, share in hit.signals.items()},
            "outdated_since": hit.outdated.since if hit.outdated else None,
        }
        for hit in recollection.hits
    ]
    return {
        "results": results,
        "recollection": recollection.uuid,
        "notes": list(recollection.notes),
    }


def memories(facts: FactQuerySet, limit: int) -> list[dict[str, Any]]:
    """Newest first."""
    words = Evidence.objects.select_related("drawer").order_by("-drawer__said_at", "start")
    rows = facts.select_related("subject", "supersedes").prefetch_related(
        Prefetch("evidence", words)
    )
    return [_memory(fact) for fact in rows.order_by("-recorded_at", "-pk")[:limit]]


def _memory(fact: Fact) -> dict[str, Any]:
    drawers = [each.drawer for each in fact.evidence.all() if each.drawer.trashed_at is None]
    drawer = drawers[0] if drawers else None
    return {
        "id": fact.uuid,
        "memory": fact.memory,
        "type": fact.type,
        "subject": fact.subject.name,
        "key": fact.predicate,
        "value": fact.object,
        "aspect": fact.aspect or None,
        "stance": fact.stance or None,
        "text": fact.text,
        "confidence": fact.confidence,
        "source_session": drawer.conversation if drawer else None,
        "source_turn": turn_of(drawer) if drawer else None,
        "created_at": fact.recorded_at,
        "updated_at": fact.retired_at or fact.recorded_at,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "supersedes": fact.supersedes.uuid if fact.supersedes else None,
        "active": fact.retired_at is None,
    }


def new_turn(write: IdempotentWrite | None) -> str:
    """The turn id: the same for the same write, so a repeated request files nothing twice."""
    return str(uuid5(_AGAIN, str(write.pk)) if write else uuid4())


def message_id(turn: str, place: int) -> str:
    return f"{turn}/{place}"


def turn_of(drawer: Drawer | Source) -> str:
    """The drawer's turn id; the drawer's own id if it came by another API."""
    if drawer.source == SOURCE:
        return drawer.external_id.rpartition("/")[0] or str(drawer.uuid)
    return str(drawer.uuid)

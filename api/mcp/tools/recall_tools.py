"""The tools remember, save_memory, recall and search."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4, uuid5

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from pydantic import AfterValidator, Field

from api.mcp.registry import (
    MOST_FOUND,
    Caller,
    Moment,
    PalaceRequest,
    Question,
    SomeText,
    Text,
    ToolRequest,
    ToolResponse,
    tool,
)
from api.mcp.tools.facts import (
    BY,
    CATEGORY,
    Category,
    FactFields,
    Tags,
    fields_of_facts,
    in_given_category,
    path_of,
)
from api.rest import memory_shapes
from language.storable import storable_id
from language.transcripts import Role, Transcript, Turn
from palace.knowledge.facts import ExtractionOptions, Scope, store_options
from palace.mining.pipeline import AtOnce, mine_at_once
from palace.mining.tasks import enqueue_rest
from palace.models import Drawer, Fact, Palace
from palace.recall import MOST_TOKENS, RecallRequest, on_one_line
from palace.recall import recall as recall_from
from palace.sdk.arguments import metadata_of
from palace.storage import file_transcript
from settings_app.throttling import cost_of

SOURCE = "mcp"
# Clients time out after a minute. A worker finishes what is not extracted by then.
PATIENCE_S = 50
MOST_MESSAGES = 1_000


class MessageFields(ToolRequest):
    content: SomeText = Field(description="Stored verbatim.")
    role: Role = "user"
    name: Text = Field("", description="Who speaks.")


class RememberRequest(PalaceRequest):
    messages: list[MessageFields] = Field(min_length=1, max_length=MOST_MESSAGES)
    conversation_id: SomeText | None = Field(
        None, description="Your own id; groups the messages of one conversation."
    )
    said_at: Moment | None = Field(None, description="When it was said; defaults to now.")
    metadata: dict[str, Any] | None = Field(None, description="Stored with each message.")
    idempotency_key: SomeText | None = Field(
        None, description="Repeating a call with the same key stores nothing twice."
    )


class StoredMessageFields(ToolResponse):
    uuid: UUID
    pointer: str


class RememberResponse(ToolResponse):
    conversation_id: str
    drawers: list[StoredMessageFields] = Field(
        description="Where each message is stored, in order."
    )
    facts: list[FactFields] = Field(
        description="Active facts extracted from the messages; none for a key that may not read."
    )
    extraction: Literal["complete", "degraded"]
    notes: list[str]


@tool("Remember", "write")
def remember(caller: Caller, request: RememberRequest) -> RememberResponse:
    """Store messages verbatim and extract facts from them. Use it for what will matter later.

    Recall and search find them at once. Where something changed, such as where somebody lives,
    the new fact supersedes the old one, which stays in the history.
    """
    palace = caller.palace_made(request.user_id)
    turn = _turn(palace, request.idempotency_key)
    return _remember(caller, palace, _transcript(turn, request))


class SaveMemoryRequest(PalaceRequest):
    content: SomeText = Field(description="One memory, in whole sentences. Stored verbatim.")
    category: Category = Field("", description="A path such as home/pets.")
    tags: Tags = Field([], description="Words to find it by.")


@tool("Save a memory", "write")
def save_memory(caller: Caller, request: SaveMemoryRequest) -> RememberResponse:
    """Store one text with a category and tags, and extract facts from it.

    Like remember, for a single note: a preference, a decision, a lesson. A mistake not to be
    repeated goes to the category anti-patterns/<domain>: what not to do, why, and what to do
    instead. The same text with the same category and tags is stored once.
    """
    palace = caller.palace_made(request.user_id)
    labels: dict[str, Any] = {"category": path_of(request.category), "tags": request.tags}
    labels = {name: value for name, value in labels.items() if value}
    turn = str(uuid5(palace.uuid, json.dumps([request.content, labels], sort_keys=True)))
    said = Turn(f"{turn}/0", "user", request.content, timezone.now(), "", labels or None)
    transcript = Transcript(SOURCE, turn, "", (said,))
    if labels:
        _label_facts(palace, transcript, labels)
    return _remember(caller, palace, transcript)


@transaction.atomic
def _label_facts(palace: Palace, transcript: Transcript, labels: dict[str, Any]) -> None:
    """File the messages; these labels are stored with each fact that is extracted from them."""
    filed = file_transcript(palace, transcript)
    if filed.stored and filed.room is not None:
        drawers = Drawer.objects.within(palace).filter(room=filed.room, facts_read_at=None)
        store_options(palace, list(drawers), Scope(BY, metadata=labels), ExtractionOptions())


def _remember(caller: Caller, palace: Palace, transcript: Transcript) -> RememberResponse:
    done = mine_at_once(palace, transcript, seconds=PATIENCE_S)
    enqueue_rest(palace.pk, done)
    answer = _remembered(palace, transcript, done)
    # A fact may also rest on what others have said.
    return answer if caller.key.may("read") else answer.model_copy(update={"facts": []})


def _turn(palace: Palace, key: str | None) -> str:
    """The same turn id for the same key, so that a repeated call files nothing twice."""
    return str(uuid5(palace.uuid, key) if key else uuid4())


def _transcript(turn: str, request: RememberRequest) -> Transcript:
    said_at = request.said_at or timezone.now()
    kept_with = metadata_of(request.metadata) or None
    turns = [
        Turn(f"{turn}/{at}", each.role, each.content, said_at, each.name, kept_with)
        for at, each in enumerate(request.messages)
    ]
    return Transcript(SOURCE, request.conversation_id or turn, "", tuple(turns), is_request=True)


def _remembered(palace: Palace, transcript: Transcript, done: AtOnce) -> RememberResponse:
    keys = [drawer.pk for drawer in done.drawers]
    drawers = Drawer.objects.within(palace).with_place().filter(pk__in=keys).order_by("position")
    facts = Fact.objects.within(palace).active()
    learnt = facts.filter(evidence__palace=palace, evidence__drawer__in=keys).distinct()
    return RememberResponse(
        conversation_id=transcript.external_id,
        drawers=[
            StoredMessageFields(uuid=each.uuid, pointer=str(each.pointer)) for each in drawers
        ],
        facts=fields_of_facts(learnt.order_by("pk")),
        extraction="degraded" if done.notes else "complete",
        notes=list(done.notes),
    )


ONLY_AGENT = "Who asks: what the fact API received for another agent is left out."


class RecallToolRequest(PalaceRequest):
    query: Question = Field(description="The question in natural language.")
    max_tokens: int = Field(1024, ge=1, le=MOST_TOKENS, description="Token budget of the context.")
    top_k: int | None = Field(None, ge=1, le=MOST_FOUND, description="Maximum number of messages.")
    as_of: Moment | None = Field(None, description="Ignore what was said later.")
    agent_id: SomeText | None = Field(None, description=ONLY_AGENT)
    recipe: SomeText | list[dict[str, Any]] | None = Field(
        None,
        description='A recall recipe: its name, or stages such as {"stage": "graph", "hops": 1}.',
    )

    def cost(self) -> int:
        return cost_of(tokens=self.max_tokens, results=self.top_k or 1)


class CitationFields(ToolResponse):
    pointer: str | None = Field(
        description="§ W-042/R-11/D-007; get_drawer returns the whole text."
    )
    drawer: UUID | None
    memory: UUID | None = Field(description="The fact's id, if the line is a fact.")
    # A model reads it beside the context, so it may forge no more than a line of the context.
    snippet: Annotated[str, AfterValidator(on_one_line)]
    score: float = Field(description="Comparable within this response only.")


class RecallResponse(ToolResponse):
    context: str = Field(description="Relevant facts and messages; empty if nothing fits.")
    tokens: int
    citations: list[CitationFields] = Field(description="The source of each line of the context.")
    recollection: UUID | None = Field(description="Id of the stored trace.")
    notes: list[str] = Field(description="What was degraded or omitted.")


@tool("Recall", "read")
def recall(caller: Caller, request: RecallToolRequest) -> RecallResponse:
    """Recall facts and messages that answer a question, within a token budget.

    Use it before you answer anything that may concern the person, their people, their projects
    or earlier conversations. Cite the pointers.
    """
    palace = caller.palace(request.user_id)
    if palace is None:
        return RecallResponse.model_validate(memory_shapes.NOTHING_RECALLED)
    recollection = recall_from(
        palace,
        RecallRequest(
            request.query,
            top_k=request.top_k,
            as_of=request.as_of,
            budget_tokens=request.max_tokens,
            with_facts=True,
            agent=storable_id(request.agent_id or ""),
            recipe=request.recipe,
        ),
    )
    return RecallResponse.model_validate(memory_shapes.recalled(recollection))


class SearchRequest(PalaceRequest):
    query: Question
    limit: int = Field(10, ge=1, le=MOST_FOUND)
    as_of: Moment | None = Field(None, description="Ignore what was said later.")
    agent_id: SomeText | None = Field(None, description=ONLY_AGENT)
    category: Category = Field("", description=f"Of save_memory. {CATEGORY}")
    tags: Tags = Field([], description="Of save_memory; only messages with all of them.")


class SearchResultFields(ToolResponse):
    content: str = Field(description="The message, verbatim.")
    role: str
    timestamp: datetime = Field(description="When it was said.")
    pointer: str
    drawer: UUID
    session_id: str = Field(description="The conversation's id.")
    score: float = Field(description="Comparable within this response only.")
    signals: dict[str, float] = Field(description="Contributions to the score; they add up to it.")
    outdated_since: datetime | None = Field(
        description="When a fact that it states ended, or was corrected."
    )


class SearchResponse(ToolResponse):
    results: list[SearchResultFields] = Field(description="Best first.")
    recollection: UUID | None
    notes: list[str]


@tool("Search", "read")
def search(caller: Caller, request: SearchRequest) -> SearchResponse:
    """Find the messages that best answer a question, whole, with each one's scoring signals."""
    palace = caller.palace(request.user_id)
    if palace is None:
        return SearchResponse.model_validate(memory_shapes.NOTHING_FOUND)
    found = recall_from(
        palace,
        RecallRequest(
            request.query,
            top_k=request.limit,
            as_of=request.as_of,
            agent=storable_id(request.agent_id or ""),
            only_ids=_labelled(palace, request.category, request.tags),
        ),
    )
    return SearchResponse.model_validate(memory_shapes.found(found))


def _labelled(palace: Palace, category: str, tags: list[str]) -> list[int] | None:
    """Keys of the messages with these labels; None if any will do."""
    if not path_of(category) and not tags:
        return None
    wanted = Q(metadata__contains={"tags": tags}) if tags else Q()
    wanted &= in_given_category(category)
    drawers = Drawer.objects.within(palace).kept().filter(wanted)
    return list(drawers.order_by().values_list("pk", flat=True))

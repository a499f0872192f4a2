"""Fact tools: query, timeline, categories, update, delete."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Q, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from pydantic import Field

from api.mcp.registry import (
    MOST_FOUND,
    STORABLE,
    Caller,
    Moment,
    PalaceRequest,
    SomeText,
    Text,
    ToolResponse,
    Words,
    tool,
)
from api.rest.problems import Problem
from language.errors import NoSuchFact
from language.storable import LABEL_LENGTH
from palace.curation.deletion import delete_fact as delete_fact_and_words
from palace.knowledge.facts import Scope, fact_edits, find_entity
from palace.models import Fact, FactQuerySet, Palace
from palace.queries.facts import in_category, with_words
from palace.queries.facts import timeline as timeline_of
from palace.sdk.arguments import statement_of
from palace.sdk.operations import UNREAD, kept_words, search_facts

BY = "mcp"
CATEGORY = "A path such as home/pets; includes categories below it."
MOST_TAGS = 20
# What save_memory stores with a message and its facts, and searches filter by.
Category = Annotated[str, Field(max_length=LABEL_LENGTH), STORABLE]
Tags = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=LABEL_LENGTH), STORABLE]],
    Field(max_length=MOST_TAGS),
]


def path_of(category: str) -> str:
    return category.strip().strip("/")


def in_given_category(category: str) -> Q:
    """The caller gave it this category, or one below it; an empty one matches all."""
    path = path_of(category)
    within = Q(metadata__category=path) | Q(metadata__category__startswith=f"{path}/")
    return within if path else Q()


def _has_labels(category: str, tags: list[str]) -> Q:
    """The condition on category and tags: the caller's category overrides ours, all tags count."""
    wanted = in_given_category(category)
    if path_of(category):
        wanted |= in_category(path_of(category)) & ~Q(metadata__has_key="category")
    for tag in tags:
        wanted &= Q(tags__contains=[tag]) | Q(metadata__contains={"tags": [tag]})
    return wanted


class FactFields(ToolResponse):
    id: UUID = Field(description="Stays the same when the fact is edited.")
    text: str
    type: str = Field(description="fact, preference, opinion or event.")
    subject: str
    predicate: str
    object: str
    category: str
    tags: list[str]
    confidence: float = Field(description="0 to 1.")
    valid_from: datetime | None = Field(description="True since; null if not known.")
    valid_to: datetime | None
    recorded_at: datetime = Field(description="When it was recorded.")
    held: bool = Field(description="Whether it is active now.")
    pointers: list[str] = Field(description="Its source drawers.")


class FactsResponse(ToolResponse):
    facts: list[FactFields]


def fields_of_facts(facts: FactQuerySet) -> list[FactFields]:
    return [fact_fields(fact) for fact in with_words(facts)]


def fact_fields(fact: Fact) -> FactFields:
    """
    Args:
        fact: With its evidence prefetched.
    """
    drawers = [each.drawer for each in fact.evidence.all() if each.drawer.trashed_at is None]
    category, tags = _labels_of(fact)
    return FactFields(
        id=fact.memory,
        text=fact.text,
        type=fact.type,
        subject=fact.subject.name,
        predicate=fact.predicate,
        object=fact.object,
        category=category,
        tags=tags,
        confidence=fact.confidence,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        recorded_at=fact.recorded_at,
        held=fact.retired_at is None,
        pointers=list(dict.fromkeys(str(drawer.pointer) for drawer in drawers)),
    )


def _labels_of(fact: Fact) -> tuple[str, list[str]]:
    category, tags = fact.metadata.get("category"), fact.metadata.get("tags")
    given = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    both = list(dict.fromkeys([*given, *fact.tags]))
    return category if isinstance(category, str) else fact.category, both


class FactsRequest(PalaceRequest):
    true_at: Moment | None = Field(None, description="What was true in the world then.")
    known_at: Moment | None = Field(
        None, description="What was recorded by then, whatever was learnt since."
    )
    query: Words | None = Field(None, description="Rank by similarity to this.")
    category: Text | None = Field(None, description=CATEGORY)
    tags: Tags = Field([], description="Only facts with all of them.")
    limit: int = Field(50, ge=1, le=MOST_FOUND)


@tool("Facts as of a time", "read")
def facts_as_of(caller: Caller, request: FactsRequest) -> FactsResponse:
    """Facts active now or, by either clock, at a time in the past; newest first.

    With a query, ranked by similarity. Before you act in some domain, read the category
    anti-patterns: past mistakes there, and what to do instead; search has those that were saved
    and are no facts.
    """
    palace = caller.palace(request.user_id)
    if palace is None:
        return FactsResponse(facts=[])
    facts = Fact.objects.within(palace).as_of(true_at=request.true_at, known_at=request.known_at)
    wanted = _has_labels(request.category or "", request.tags)
    if request.query is None:
        newest = facts.filter(wanted).order_by("-recorded_at", "-pk")[: request.limit]
        return FactsResponse(facts=fields_of_facts(newest))
    pairs = search_facts(palace, request.query, facts, wanted, limit=request.limit)
    closest = [fact.pk for fact, _ in pairs]
    found = with_words(Fact.objects.within(palace).filter(pk__in=closest)).in_bulk()
    return FactsResponse(facts=[fact_fields(found[key]) for key in closest if key in found])


class TimelineRequest(PalaceRequest):
    entity: SomeText = Field(description="A person, place, project or thing, by name or alias.")
    known_at: Moment | None = Field(None, description="As recorded by then.")
    limit: int = Field(100, ge=1, le=1000, description="How many of the latest.")


class TimelineResponse(ToolResponse):
    entity: str
    kind: str = Field(description="person, pet, place, organisation, project, event or item.")
    facts: list[FactFields] = Field(description="In the order they came true.")


@tool("Timeline", "read")
def timeline(caller: Caller, request: TimelineRequest) -> TimelineResponse:
    """The history of a person, place, project or thing: what is true and what was before."""
    palace = caller.palace(request.user_id)
    entity = find_entity(palace, request.entity) if palace else None
    if palace is None or entity is None:
        said = f"No entity here is called “{request.entity[:100]}”; try recall."
        raise Problem(404, "no_such_entity", said)
    facts = list(timeline_of(palace, entity, known_at=request.known_at))[-request.limit :]
    story = [fact_fields(fact) for fact in facts]
    return TimelineResponse(entity=entity.name, kind=entity.kind, facts=story)


class CategoriesRequest(PalaceRequest):
    pass


class CategoryFields(ToolResponse):
    category: str = Field(description="Empty for facts without one.")
    facts: int = Field(description="Number of facts in it and below it.")


class CategoriesResponse(ToolResponse):
    categories: list[CategoryFields]


@tool("List categories", "read")
def list_categories(caller: Caller, request: CategoriesRequest) -> CategoriesResponse:
    """List the categories of active facts, with the number of facts in and below each."""
    palace = caller.palace(request.user_id)
    counts: dict[str, int] = {}
    if palace is not None:
        active = Fact.objects.within(palace).active().order_by()
        # A category that the caller gave counts, and not ours.
        given = KeyTextTransform("category", "metadata")
        named = active.annotate(path=Coalesce(given, F("category"), output_field=TextField()))
        for path, number in named.values_list("path").annotate(Count("pk")):
            parts = path.split("/")
            for end in range(1, len(parts) + 1):
                above = "/".join(parts[:end])
                counts[above] = counts.get(above, 0) + number
    return CategoriesResponse(
        categories=[CategoryFields(category=path, facts=counts[path]) for path in sorted(counts)]
    )


class UpdateFactRequest(PalaceRequest):
    id: UUID = Field(description="The fact's id.")
    text: Text = Field(description="The new text, a whole sentence.")


class UpdateFactResponse(FactFields):
    note: str | None = Field(description="What could not be updated from the new text, and why.")


@tool("Update a fact", "write", destroys=True, again_is_same=True)
def update_fact(caller: Caller, request: UpdateFactRequest) -> UpdateFactResponse:
    """Correct a fact that was never true. The previous text stays in its history.

    Its object, connections and sources are updated from the new text.

    If something has changed in the world, use remember instead: that also records until when the
    old fact was true.
    """
    caller.check("read")
    palace, text = _palace_of(caller, request.user_id, request.id), statement_of(request.text)
    written = fact_edits.rewrite(palace, request.id, text, Scope(BY))
    [fact] = fields_of_facts(Fact.objects.within(palace).filter(pk=written.fact.pk))
    return UpdateFactResponse(**fact.model_dump(), note=None if written.is_read else UNREAD)


class DeleteFactRequest(PalaceRequest):
    id: UUID = Field(description="The fact's id.")
    confirm: str = Field(
        description="The fact's current text, exactly, to confirm which fact you mean."
    )


class KeptMessageFields(ToolResponse):
    pointer: str
    why: str = Field(
        description="other_memory: another fact uses it; other_source: it came from elsewhere, "
        "such as in a chat."
    )


class DeleteFactResponse(ToolResponse):
    id: UUID
    deleted: str = Field(description="The deleted text.")
    trashed: int = Field(description="How many source messages went to the trash.")
    kept: list[KeptMessageFields] = Field(description="Source messages that stay.")


@tool("Delete a fact", "write", destroys=True)
def delete_fact(caller: Caller, request: DeleteFactRequest) -> DeleteFactResponse:
    """Delete a fact, and the remembered messages that only it uses. Its history stays.

    The messages go to the trash. Those that another fact uses, or that came from a chat or an
    import, stay; they are listed. Call it only when the person asks for it.
    """
    caller.check("read")
    palace = _palace_of(caller, request.user_id, request.id)
    with transaction.atomic():
        palace.lock()
        fact = fact_edits.current(palace, request.id)
        if fact.text != request.confirm:
            said = f"confirm is not the fact's text, which is: {fact.text}"
            raise Problem(409, "not_confirmed", said)
        gone = delete_fact_and_words(palace, request.id, Scope(BY))
    kept = [
        KeptMessageFields(pointer=each["pointer"], why=each["why"]) for each in kept_words(gone)
    ]
    return DeleteFactResponse(id=request.id, deleted=fact.text, trashed=gone.trashed, kept=kept)


def _palace_of(caller: Caller, user_id: str | None, memory: UUID) -> Palace:
    """
    Raises:
        NoSuchFact: the person has no palace, so there is no such fact.
    """
    palace = caller.palace(user_id)
    if palace is None:
        raise NoSuchFact(memory)
    return palace

"""Facts: what is held to be so, what was, and the changing of it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q
from pydantic import Field

from api.mcp.callers import Caller
from api.mcp.fields import MOST_FOUND, Moment, OfSomebody, SomeText, Text, Told
from api.mcp.registry import tool
from api.rest.problems import Problem
from palace.curation.fact_deletion import delete_fact as delete_fact_and_words
from palace.errors import NoSuchFact
from palace.knowledge.facts import fact_edits
from palace.knowledge.facts.entities import find_entity
from palace.knowledge.facts.history import timeline as timeline_of
from palace.knowledge.facts.history import with_words
from palace.knowledge.facts.scope import Scope
from palace.models import Fact, Palace
from palace.models.facts import FactQuerySet
from palace.sdk.arguments import statement_of
from palace.sdk.fact_search import search_facts
from palace.sdk.shown import UNREAD, kept_words

BY = "mcp"
CATEGORY = "A path such as home/pets; what lies below it counts too."


class FactTold(Told):
    id: UUID = Field(description="Stays the same when the fact is changed.")
    text: str
    type: str = Field(description="fact, preference, opinion or event.")
    subject: str
    predicate: str
    object: str
    category: str
    confidence: float = Field(description="0 to 1.")
    valid_from: datetime | None = Field(description="Since when it is so; null: not known.")
    valid_to: datetime | None
    recorded_at: datetime = Field(description="When it was learnt.")
    held: bool = Field(description="Whether it is held to be so now.")
    pointers: list[str] = Field(description="The drawers whose words it rests on.")


class FactsTold(Told):
    facts: list[FactTold]


def facts_told(facts: FactQuerySet) -> list[FactTold]:
    return [fact_told(fact) for fact in with_words(facts)]


def fact_told(fact: Fact) -> FactTold:
    """One that has its words at hand."""
    drawers = [each.drawer for each in fact.evidence.all() if each.drawer.trashed_at is None]
    return FactTold(
        id=fact.memory,
        text=fact.text,
        type=fact.type,
        subject=fact.subject.name,
        predicate=fact.predicate,
        object=fact.object,
        category=fact.category,
        confidence=fact.confidence,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        recorded_at=fact.recorded_at,
        held=fact.retired_at is None,
        pointers=list(dict.fromkeys(str(drawer.pointer) for drawer in drawers)),
    )


class FactsAsked(OfSomebody):
    true_at: Moment | None = Field(None, description="What was so in the world then.")
    known_at: Moment | None = Field(
        None, description="What was held then, whatever has been learnt since."
    )
    query: Text | None = Field(None, description="Only the closest to this by meaning.")
    category: Text | None = Field(None, description=CATEGORY)
    limit: int = Field(50, ge=1, le=MOST_FOUND)


@tool("Facts as of a time", "read")
def facts_as_of(caller: Caller, asked: FactsAsked) -> FactsTold:
    """The facts held now or, by either clock, at a time in the past; the newest first.

    With a query, the closest first. Before you act in some domain, read the category
    anti-patterns: what went wrong there, and what to do instead.
    """
    palace = caller.palace(asked.user_id)
    if palace is None:
        return FactsTold(facts=[])
    held = Fact.objects.within(palace).as_of(true_at=asked.true_at, known_at=asked.known_at)
    wanted = _within(asked.category)
    if asked.query is None:
        newest = held.filter(wanted).order_by("-recorded_at", "-pk")[: asked.limit]
        return FactsTold(facts=facts_told(newest))
    pairs = search_facts(palace, asked.query, held, wanted, limit=asked.limit)
    closest = [fact.pk for fact, _ in pairs]
    told = with_words(Fact.objects.within(palace).filter(pk__in=closest)).in_bulk()
    return FactsTold(facts=[fact_told(told[key]) for key in closest if key in told])


def _within(category: str | None) -> Q:
    path = (category or "").strip("/")
    return Q(category=path) | Q(category__startswith=f"{path}/") if path else Q()


class TimelineAsked(OfSomebody):
    entity: SomeText = Field(description="Somebody or something, by name or another name.")
    known_at: Moment | None = Field(None, description="As it was known then.")
    limit: int = Field(100, ge=1, le=1000, description="The latest of them.")


class TimelineTold(Told):
    entity: str
    kind: str = Field(description="person, place, organisation, project, event or item.")
    facts: list[FactTold] = Field(description="In the order in which things came true.")


@tool("Timeline", "read")
def timeline(caller: Caller, asked: TimelineAsked) -> TimelineTold:
    """The story of a person, a place, a project or a thing: what is so, and what was before."""
    palace = caller.palace(asked.user_id)
    entity = find_entity(palace, asked.entity) if palace else None
    if palace is None or entity is None:
        said = f"Nobody and nothing here is called “{asked.entity[:100]}”; try recall."
        raise Problem(404, "no_such_entity", said)
    facts = list(timeline_of(palace, entity, known_at=asked.known_at))[-asked.limit :]
    told = [fact_told(fact) for fact in facts]
    return TimelineTold(entity=entity.name, kind=entity.kind, facts=told)


class CategoriesAsked(OfSomebody):
    pass


class Category(Told):
    category: str = Field(description="Empty: in none.")
    facts: int = Field(description="In it and below it.")


class CategoriesTold(Told):
    categories: list[Category]


@tool("List categories", "read")
def list_categories(caller: Caller, asked: CategoriesAsked) -> CategoriesTold:
    """The categories of what is held, each with how many facts are in it and below it."""
    palace = caller.palace(asked.user_id)
    counts: dict[str, int] = {}
    if palace is not None:
        held = Fact.objects.within(palace).active().order_by()
        for path, facts in held.values_list("category").annotate(Count("pk")):
            parts = path.split("/")
            for end in range(1, len(parts) + 1):
                above = "/".join(parts[:end])
                counts[above] = counts.get(above, 0) + facts
    return CategoriesTold(
        categories=[Category(category=path, facts=counts[path]) for path in sorted(counts)]
    )


class UpdateAsked(OfSomebody):
    id: UUID = Field(description="Of the fact.")
    text: Text = Field(description="What it is to say, as a whole sentence.")


class FactUpdated(FactTold):
    note: str | None = Field(description="What could not follow the new text, and why.")


@tool("Update a fact", "write", destroys=True, again_is_same=True)
def update_fact(caller: Caller, asked: UpdateAsked) -> FactUpdated:
    """Correct a fact that was never so. What it said stays in its history.

    Its object, its connections and its sources follow the new text.

    Where something has changed in the world, remember what was said instead: then it is also
    known until when the old fact was true.
    """
    palace, text = _palace_of(caller, asked.user_id, asked.id), statement_of(asked.text)
    written = fact_edits.rewrite(palace, asked.id, text, Scope(BY))
    [told] = facts_told(Fact.objects.within(palace).filter(pk=written.fact.pk))
    return FactUpdated(**told.model_dump(), note=None if written.is_read else UNREAD)


class DeleteAsked(OfSomebody):
    id: UUID = Field(description="Of the fact.")
    confirm: str = Field(description="The fact's present text, exactly: it is the one you mean.")


class WordsKept(Told):
    pointer: str
    why: str = Field(
        description="other_memory: another fact rests on it; other_source: it was said elsewhere, "
        "such as in a chat."
    )


class DeleteTold(Told):
    id: UUID
    deleted: str = Field(description="What it said.")
    trashed: int = Field(description="How many messages went to the trash with it.")
    kept: list[WordsKept] = Field(description="Messages that it rested on and that stay.")


@tool("Delete a fact", "write", destroys=True)
def delete_fact(caller: Caller, asked: DeleteAsked) -> DeleteTold:
    """Delete a fact, and the remembered messages that it alone rests on. Its history stays.

    The messages go to the trash. Those that another fact rests on, or that were said in a chat or
    imported, stay; they are listed. Only when the person asks for it.
    """
    palace = _palace_of(caller, asked.user_id, asked.id)
    with transaction.atomic():
        palace.lock()
        fact = fact_edits.current(palace, asked.id)
        if fact.text != asked.confirm:
            said = f"confirm is not what the fact says, which is: {fact.text}"
            raise Problem(409, "not_confirmed", said)
        gone = delete_fact_and_words(palace, asked.id, Scope(BY))
    kept = [WordsKept(pointer=each["pointer"], why=each["why"]) for each in kept_words(gone)]
    return DeleteTold(id=asked.id, deleted=fact.text, trashed=gone.trashed, kept=kept)


def _palace_of(caller: Caller, user_id: str | None, memory: UUID) -> Palace:
    """The one a fact is looked for in; without it there is no such fact."""
    palace = caller.palace(user_id)
    if palace is None:
        raise NoSuchFact(memory)
    return palace

"""Facts: filters, names, histories, timelines and relations, with the words they rest on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import cast
from uuid import UUID

from django.db.models import F, Prefetch, Q, QuerySet

from isolation.raw_sql import all_but, columns, fetch_rows, read_instance
from palace.models import (
    Drawer,
    Entity,
    Evidence,
    Fact,
    FactEvent,
    FactQuerySet,
    Palace,
    ProposalQuote,
    stored_name,
)

# Longer quotes are cut; the drawer has the rest.
QUOTE_LENGTH = 600
# The most quotes read of one drawer; no message that people write has more.
QUOTES_READ = 400
# Of the drawer of a quote: where it is, who said it and when.
_UNQUOTED = all_but(Drawer, "id uuid palace_id role speaker said_at trashed_at")
# What nothing shows of many facts.
UNSHOWN = frozenset(
    "aspect tags metadata agent run opened_by_id closed_by_id settled_at withdrawn_at".split()
)
# Active, or ended because the world changed: not what was deleted or corrected.
EVER_TRUE = Q(retired_at=None) | Q(fate__in=Fact.WAS_TRUE)


def in_category(category: str) -> Q:
    """In a category or below it; an empty one matches all."""
    path = category.strip("/")
    return Q(category=path) | Q(category__startswith=f"{path}/") if path else Q()


def about_entity(entity: Entity) -> Q:
    """Its subject or its object is this entity."""
    return Q(subject=entity) | Q(object_entity=entity)


def named_like(words: str) -> Q:
    """Each word is part of the name or of another name."""
    found = Q()
    for word in map(stored_name, words.split()):
        found &= Q(name__icontains=word) | Q(aliases__icontains=word)
    return found


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words that a fact rests on, and of their drawer what is shown beside them."""

    start: int
    end: int
    words: str
    drawer: UUID
    role: str
    speaker: str
    said_at: datetime
    trashed_at: datetime | None


# Written out: Django takes longer to put such a statement together than the database to answer it.
_QUOTES = """
SELECT fact.id, quote.start, quote."end",
    substring(substring(quote.text FROM quote.start + 1 FOR quote."end" - quote.start) FOR %(cut)s),
    quote.uuid, quote.role, quote.speaker, quote.said_at, quote.trashed_at
FROM unnest(%(facts)s::bigint[]) AS fact (id) CROSS JOIN LATERAL (
    SELECT evidence.start, evidence."end", evidence.id, drawer.text,
        drawer.uuid, drawer.role, drawer.speaker, drawer.said_at, drawer.trashed_at
    FROM palace_evidence evidence
    JOIN palace_drawer drawer
        ON drawer.palace_id = %(palace)s AND drawer.id = evidence.drawer_id
    WHERE evidence.palace_id = %(palace)s AND evidence.fact_id = fact.id
    ORDER BY drawer.said_at, evidence.start, evidence.id LIMIT %(most)s
) quote
ORDER BY fact.id, quote.said_at, quote.start, quote.id
"""


def add_quotes(palace: Palace, facts: Collection[Fact], *, at_most: int = 1) -> None:
    """Set `shown` of these facts of the palace to the earliest quotes, in one query.

    Args:
        at_most: How many quotes each fact gets.
    """
    if not facts:
        return
    keys = [fact.pk for fact in facts]
    sent: dict[str, int | list[int]] = {
        "palace": palace.pk,
        "facts": keys,
        "most": at_most,
        "cut": QUOTE_LENGTH,
    }
    quotes: defaultdict[int, list[Quoted]] = defaultdict(list)
    for fact, *quote in fetch_rows(_QUOTES, sent, prepared=True):
        quotes[fact].append(Quoted(*quote))
    for each in facts:
        setattr(each, "shown", quotes[each.pk])  # noqa: B010 - the model has no such field.


def facts_of_keys(palace: Palace, keys: Collection[int]) -> dict[int, Fact]:
    """Those that exist, by key, with what pages show of many facts."""
    rows = fetch_rows(_of_keys(), [palace.pk, list(keys)], prepared=True) if keys else ()
    return {row[0]: cast("Fact", read_instance(Fact, iter(row), UNSHOWN)) for row in rows}


@cache
def _of_keys() -> str:
    return (
        f"SELECT {columns(Fact, 'f', UNSHOWN)} FROM palace_fact f"  # noqa: S608 - from the model.
        " WHERE f.palace_id = %s AND f.id = ANY(%s::bigint[])"
    )


def entities_of_keys(palace: Palace, keys: Collection[int]) -> dict[int, Entity]:
    """Those that exist, by key."""
    rows = fetch_rows(_entities(), [palace.pk, list(keys)], prepared=True) if keys else ()
    return {row[0]: cast("Entity", read_instance(Entity, iter(row))) for row in rows}


@cache
def _entities() -> str:
    return (
        f"SELECT {columns(Entity, 'e')} FROM palace_entity e"  # noqa: S608 - from the model.
        " WHERE e.palace_id = %s AND e.id = ANY(%s::bigint[])"
    )


def quotes_of_proposals(palace: Palace, keys: Collection[int]) -> list[ProposalQuote]:
    """Each with its `words`, and of its drawer what is shown beside them; as they were said."""
    found = []
    given = {"palace": palace.pk, "proposals": list(keys), "cut": QUOTE_LENGTH}
    for words, *rest in fetch_rows(_proposal_quotes(), given, prepared=True) if keys else ():
        values = iter(rest)
        quote = cast("ProposalQuote", read_instance(ProposalQuote, values))
        quote._state.fields_cache["drawer"] = read_instance(Drawer, values, _UNQUOTED)
        setattr(quote, "words", words)  # noqa: B010 - the model has no such field.
        found.append(quote)
    return found


@cache
def _proposal_quotes() -> str:
    return f"""
        SELECT substring(
                substring(d.text FROM q.start + 1 FOR q."end" - q.start) FOR %(cut)s::int
            ), {columns(ProposalQuote, "q")}, {columns(Drawer, "d", _UNQUOTED)}
        FROM palace_proposalquote q
        JOIN palace_drawer d ON d.palace_id = %(palace)s AND d.id = q.drawer_id
        WHERE q.palace_id = %(palace)s AND q.proposal_id = ANY(%(proposals)s::bigint[])
        ORDER BY d.said_at, q.start, q.id
    """  # noqa: S608 - put together from the models.


def evidence_in(drawer: Drawer) -> list[Evidence]:
    """The quotes of a drawer in their order, each with its fact."""
    quotes = Evidence.objects.filter(palace=drawer.palace_id, drawer=drawer)
    return list(quotes.select_related("fact__subject").order_by("start", "pk")[:QUOTES_READ])


@dataclass(frozen=True, slots=True)
class SupportedFact:
    """A memory with evidence in a drawer.

    Attributes:
        fact: Its active version, else the latest of those with evidence in the drawer.
        start: Where its first quote begins.
        is_only: Whether it is active and has evidence in no other drawer.
    """

    fact: Fact
    start: int
    is_only: bool


def supported_facts(
    palace: Palace, drawer: Drawer, quotes: Sequence[Evidence]
) -> list[SupportedFact]:
    """The memories that these quotes of the drawer support, each once."""
    only = _supported_only_by(palace, drawer) if quotes else set()
    memories: dict[UUID, SupportedFact] = {}
    for quote in quotes:
        known = memories.get(quote.fact.memory)
        if known is None or _comes_before(quote.fact, known.fact):
            start = known.start if known else quote.start
            is_only = quote.fact.pk in only
            memories[quote.fact.memory] = SupportedFact(quote.fact, start, is_only)
    return list(memories.values())


def _comes_before(fact: Fact, other: Fact) -> bool:
    """Active versions come before inactive ones, later ones before earlier ones."""
    return (fact.retired_at is None, fact.recorded_at) > (
        other.retired_at is None,
        other.recorded_at,
    )


def _supported_only_by(palace: Palace, drawer: Drawer) -> set[int]:
    this = Drawer.objects.within(palace).filter(pk=drawer.pk)
    return set(Fact.objects.supported_only_by(palace, this).values_list("pk", flat=True))


def history(palace: Palace, memory: UUID) -> list[FactEvent]:
    """All events of a memory, oldest first."""
    return list(FactEvent.objects.filter(palace=palace, memory=memory).order_by("at", "pk"))


def timeline(
    palace: Palace,
    entity: Entity,
    *,
    known_at: datetime | None = None,
    among: FactQuerySet | None = None,
) -> Sequence[Fact]:
    """All facts about an entity, as subject or object, in the order in which they became true.

    Includes retired facts, except those that were never true.

    Args:
        known_at: As recorded then; by default as recorded today.
        among: Only these facts; None: all.
    """
    candidates = Fact.objects.all() if among is None else among
    facts = candidates.within(palace).filter(Q(subject=entity) | Q(object_entity=entity))
    if known_at is None:
        facts = facts.filter(Q(retired_at=None) | Q(fate__in=Fact.WAS_TRUE))
    else:
        facts = facts.known_at(known_at)
    return list(with_words(facts).in_order())


def with_words(facts: FactQuerySet) -> FactQuerySet:
    """Fetch subject, object and evidence with the facts."""
    words = Evidence.objects.select_related("drawer__room__wing", "drawer__closet")
    return facts.select_related("subject", "object_entity").prefetch_related(
        Prefetch("evidence", words.order_by("drawer__said_at", "start"))
    )


def entities(palace: Palace, facts: FactQuerySet | None = None) -> QuerySet[Entity]:
    """The entities of a palace, by kind and slug.

    Args:
        facts: Only subjects and objects of these facts; None: all.
    """
    # All kinds, as the index begins with the kind.
    found = Entity.objects.filter(palace=palace, kind__in=Entity.Kind.values)
    if facts is not None:
        rows = facts.within(palace).order_by()
        ends = rows.exclude(object_entity=None).values("object_entity")
        found = found.filter(Q(pk__in=rows.values("subject")) | Q(pk__in=ends))
    return found.order_by("kind", "slug")


def relations(entity: Entity, facts: FactQuerySet) -> FactQuerySet:
    """The facts that connect an entity with another, in either direction, latest first."""
    edges = facts.filter(
        Q(subject=entity, object_entity__isnull=False) | Q(object_entity=entity)
    ).exclude(subject=F("object_entity"))
    return edges.select_related("subject", "object_entity").order_by("-recorded_at", "-pk")

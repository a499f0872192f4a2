"""Queries of facts: the history of a memory, the timeline of an entity, and the graph."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import F, Prefetch, Q, QuerySet

from palace.models import Entity, Evidence, Fact, FactEvent, FactQuerySet, Palace


def history(palace: Palace, memory: UUID) -> list[FactEvent]:
    """All events of a memory, oldest first."""
    return list(FactEvent.objects.filter(palace=palace, memory=memory).order_by("at", "pk"))


def versions(palace: Palace, memory: UUID) -> list[Fact]:
    """All versions of a memory, oldest first, each with its evidence."""
    return list(
        with_words(Fact.objects.within(palace).filter(memory=memory)).order_by("recorded_at", "pk")
    )


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

"""Filters on facts that pages and programs share."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q

from palace.models import Entity, Fact, FactQuerySet, Palace

# Active, or ended because the world changed: not what was deleted or corrected.
EVER_TRUE = Q(retired_at=None) | Q(fate__in=Fact.WAS_TRUE)


def in_category(category: str) -> Q:
    """In a category or below it; an empty one matches all."""
    path = category.strip("/")
    return Q(category=path) | Q(category__startswith=f"{path}/") if path else Q()


def about_entity(entity: Entity) -> Q:
    """Its subject or its object is this entity."""
    return Q(subject=entity) | Q(object_entity=entity)


def latest_versions(palace: Palace, memories: Collection[str | UUID]) -> FactQuerySet:
    """The version of each memory that was recorded last."""
    versions = Fact.objects.within(palace).filter(memory__in=list(memories))
    return versions.order_by("memory", "-recorded_at", "-pk").distinct("memory")

"""The graph of a palace: who and what is spoken of, and what connects them."""

from __future__ import annotations

from django.db.models import F, Q, QuerySet

from palace.models import Entity, Palace
from palace.models.facts import FactQuerySet


def entities(palace: Palace, facts: FactQuerySet | None = None) -> QuerySet[Entity]:
    """By kind and slug.

    Args:
        facts: Only those that one of these facts is about, or ends at; None: all.
    """
    # All kinds, as the index begins with the kind.
    found = Entity.objects.filter(palace=palace, kind__in=Entity.Kind.values)
    if facts is not None:
        rows = facts.within(palace).order_by()
        ends = rows.exclude(object_entity=None).values("object_entity")
        found = found.filter(Q(pk__in=rows.values("subject")) | Q(pk__in=ends))
    return found.order_by("kind", "slug")


def relations(entity: Entity, facts: FactQuerySet) -> FactQuerySet:
    """Those of the facts that connect an entity with another, at either end; the latest first."""
    edges = facts.filter(
        Q(subject=entity, object_entity__isnull=False) | Q(object_entity=entity)
    ).exclude(subject=F("object_entity"))
    return edges.select_related("subject", "object_entity").order_by("-recorded_at", "-pk")

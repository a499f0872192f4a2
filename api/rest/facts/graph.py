"""/v1/entities/: entities of memories, their relations and timelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.base import ApiView
from api.rest.facts import shapes
from api.rest.facts.shapes import scope_in
from api.rest.problems import not_found
from palace.knowledge.facts import find_entity
from palace.models import Entity, Fact, FactQuerySet, Palace
from palace.queries.facts import entities, relations, timeline
from palace.recall import walk
from palace.sdk.operations import CallScope

TAG = ["fact API"]


class GraphView(ApiView):
    def named(self, name: str, params: Mapping[str, Any]) -> tuple[CallScope, Palace, Entity]:
        """
        Raises:
            Problem: 404, no entity has this name.
        """
        scope = scope_in(params, self.key)
        palace = scope.palace(self.key.owner_id)
        entity = find_entity(palace, name, prefer=params["type"]) if palace else None
        if palace is None or entity is None:
            raise not_found()
        return scope, palace, entity


class EntitiesView(GraphView):
    only_reads: ClassVar[bool] = True

    @extend_schema(
        tags=TAG, parameters=[shapes.EntitiesRequest], responses={200: shapes.GraphEntities}
    )
    def get(self, request: Request) -> Response:
        """List entities by kind and name."""
        return self._shown(self.read_query(shapes.EntitiesRequest))

    @extend_schema(tags=TAG, request=shapes.EntitiesRequest, responses={200: shapes.GraphEntities})
    def post(self, request: Request) -> Response:
        """List entities, with the scope in the body."""
        return self._shown(self.read(shapes.EntitiesRequest))

    def _shown(self, params: Mapping[str, Any]) -> Response:
        scope = scope_in(params, self.key)
        palace = scope.palace(self.key.owner_id)
        if palace is None:
            return Response({"results": []})
        narrowed = scope.agent or scope.run
        among = scope.narrow(Fact.objects.within(palace).active()) if narrowed else None
        found = entities(palace, among)[: params["limit"]]
        return Response({"results": [_entity(entity) for entity in found]})


class RelationsView(GraphView):
    @extend_schema(
        tags=TAG, parameters=[shapes.RelationsRequest], responses={200: shapes.GraphRelations}
    )
    def get(self, request: Request, name: str) -> Response:
        """List an entity's relations in both directions, nearest and then latest first."""
        params = self.read_query(shapes.RelationsRequest)
        scope, palace, entity = self.named(name, params)
        facts = Fact.objects.within(palace).as_of(
            true_at=params["true_at"], known_at=params["known_at"]
        )
        edges = _edges(entity, scope.narrow(facts), params["hops"], params["limit"])
        return Response({"entity": _entity(entity), "results": [_edge(*each) for each in edges]})


class TimelineView(GraphView):
    @extend_schema(
        tags=TAG, parameters=[shapes.TimelineRequest], responses={200: shapes.EntityTimeline}
    )
    def get(self, request: Request, name: str) -> Response:
        """List everything that became true about an entity, in chronological order.

        Includes what is no longer true; excludes what was never true.
        """
        params = self.read_query(shapes.TimelineRequest)
        scope, palace, entity = self.named(name, params)
        among = scope.narrow(Fact.objects.all())
        story = timeline(palace, entity, known_at=params["known_at"], among=among)
        return Response({"entity": _entity(entity), "results": [_line(fact) for fact in story]})


def _entity(entity: Entity) -> dict[str, Any]:
    return {
        "id": entity.uuid,
        "name": entity.name,
        "type": entity.kind,
        "aliases": entity.aliases,
        "created_at": entity.created_at,
    }


def _edges(
    entity: Entity, facts: FactQuerySet, hops: int, limit: int
) -> Iterator[tuple[Fact, int]]:
    """The facts up to `hops` edges away, each with how many, nearest and then latest first."""
    if hops == 1:
        yield from ((fact, 1) for fact in relations(entity, facts)[:limit])
        return
    distances = walk(facts, [entity.pk], hops=hops).distances()
    found = facts.filter(pk__in=distances).select_related("subject", "object_entity")
    latest = found.order_by("-recorded_at", "-pk")
    nearest = sorted(latest, key=lambda fact: distances[fact.pk])
    yield from ((fact, distances[fact.pk]) for fact in nearest[:limit])


def _edge(fact: Fact, hops: int) -> dict[str, Any]:
    return {
        "id": fact.memory,
        "hops": hops,
        "source": fact.subject.name,
        "relation": fact.predicate,
        "target": fact.object_entity.name if fact.object_entity else fact.object,
        "memory": fact.text,
        "confidence": fact.confidence,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
    }


def _line(fact: Fact) -> dict[str, Any]:
    drawers = [each.drawer for each in fact.evidence.all()]
    return {
        "id": fact.memory,
        "memory": fact.text,
        "type": fact.type,
        "subject": fact.subject.name,
        "predicate": fact.predicate,
        "object": fact.object,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "recorded_at": fact.recorded_at,
        "retired_at": fact.retired_at,
        "drawers": list(
            dict.fromkeys(drawer.uuid for drawer in drawers if drawer.trashed_at is None)
        ),
    }

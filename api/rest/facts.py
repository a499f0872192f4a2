"""Views of the fact API: `palace.sdk.Memory` over HTTP, and the graph.

/v1/memories/ and /v1/reset/; /v1/entities/ has the entities of memories, their relations and
timelines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest import etags, fact_shapes
from api.rest.access import palaces_for
from api.rest.base import ApiView
from api.rest.fact_shapes import Scoped, scope_in, without_scope
from api.rest.memory_shapes import new_turn
from api.rest.problems import Problem, not_found
from palace.knowledge.facts import find_entity
from palace.models import Entity, Fact, FactQuerySet, Palace
from palace.queries.facts import entities, relations, timeline
from palace.recall import walk
from palace.sdk import Deleted, FactConflict, Memory, MemoryEvent, operations
from palace.sdk.operations import CallScope, translate_errors
from settings_app.api_keys import ApiKey

TAG = ["fact API"]
TAKEN = "Another memory is active in its place; delete that first, or leave this as it is."
# What a key that only writes gets back of a memory: what it wrote.
_WRITTEN: tuple[Literal["id", "memory", "changed", "note"], ...]
_WRITTEN = ("id", "memory", "changed", "note")


class FactView(ApiView):
    @property
    def memory(self) -> Memory:
        """The SDK's Memory, limited to the palaces of the key."""
        return Memory(self.key.owner, subject=self.key.subject)


class MemoriesView(FactView):
    @extend_schema(
        tags=TAG, request=fact_shapes.AddMemoriesRequest, responses={200: fact_shapes.MemoryEvents}
    )
    def post(self, request: Request) -> Response:
        """Store messages verbatim and extract memories, each judged against known ones.

        If a model fails, the local rules' results are stored. A key without `read` gets the text
        of new memories alone.
        """
        params = self.read(fact_shapes.AddMemoriesRequest)
        scope = scope_in(params, self.key)
        what = operations.IngestionRequest.read(
            scope, **without_scope(params), name=new_turn(self.write)
        )
        added = operations.add(scope.palace_made(self.key.owner_id), what)
        if not self.key.may("read"):
            added["results"] = [_as_written(event) for event in added["results"]]
        return Response(added)

    @extend_schema(
        tags=TAG, parameters=[fact_shapes.ListRequest], responses={200: fact_shapes.MemoryItems}
    )
    def get(self, request: Request) -> Response:
        """List the memories within the scope, newest first."""
        return Response(self.memory.get_all(**self.read_query(fact_shapes.ListRequest)))

    @extend_schema(
        tags=TAG, parameters=[Scoped], request=None, responses={200: fact_shapes.MemoriesDeleted}
    )
    def delete(self, request: Request) -> Response:
        """Delete all memories within the scope. Their histories stay.

        The messages that the fact API was given within the scope go to the trash, unless another
        memory rests on them. With `agent_id`, only those the deleted memories rest on.
        """
        gone = self.memory.delete_all(**self.read_query(Scoped))
        return Response(_deleted(gone, self.key))


class SearchMemoriesView(FactView):
    only_reads: ClassVar[bool] = True

    @extend_schema(
        tags=TAG,
        parameters=[fact_shapes.SearchInAddress],
        responses={200: fact_shapes.MemoriesFound},
    )
    def get(self, request: Request) -> Response:
        """Search memories by meaning, best first."""
        return self._found(self.read_query(fact_shapes.SearchInAddress))

    @extend_schema(
        tags=TAG,
        request=fact_shapes.MemorySearchRequest,
        responses={200: fact_shapes.MemoriesFound},
    )
    def post(self, request: Request) -> Response:
        """Search with the query in the body, where filters need no quoting."""
        return self._found(self.read(fact_shapes.MemorySearchRequest))

    def _found(self, params: dict[str, Any]) -> Response:
        params.pop("q", None)
        return Response(self.memory.search(**params))


class MemoryView(FactView):
    @extend_schema(tags=TAG, responses={200: fact_shapes.MemoryItemShown})
    def get(self, request: Request, memory_id: str) -> Response:
        """Get a memory that is active or was stated as past."""
        item = self.memory.get(memory_id)
        if item is None:
            raise not_found()
        return etags.answer(request, item)

    @extend_schema(
        tags=TAG, request=fact_shapes.MemoryRewritten, responses={200: fact_shapes.MemoryUpdated}
    )
    def put(self, request: Request, memory_id: str) -> Response:
        """Correct a memory. Object, connections, sources and vector are updated from the new text.

        The previous text stays in its history. With `If-Match`, only if it still says what
        you have read. 409 with `fact_conflict` where another memory already says what there can
        be one of. A key without `read` gets `id`, `memory`, `changed` and `note` alone.
        """
        text = self.read(fact_shapes.MemoryRewritten)["text"]
        try:
            with translate_errors():
                item = operations.rewrite(
                    palaces_for(self.key), memory_id, text, check=partial(etags.check, request)
                )
        except FactConflict as error:
            raise error if self.key.may("read") else Problem(409, error.code, TAKEN) from None
        if not self.key.may("read"):
            return Response({name: item[name] for name in _WRITTEN})
        return etags.answer(request, item, but=("changed", "note"))

    @extend_schema(tags=TAG, request=None, responses={200: fact_shapes.MemoriesDeleted, 204: None})
    def delete(self, request: Request, memory_id: str) -> Response:
        """Delete a memory. Its history stays. `If-Match` as of PUT.

        Messages sent to the fact API that only this memory uses go to the trash. 204
        where no words of it stay; 200 with the list of those that do.
        """
        with translate_errors():
            deleted = operations.delete(
                palaces_for(self.key), memory_id, check=partial(etags.check, request)
            )
        return Response(_deleted(deleted, self.key)) if deleted.kept else Response(status=204)


def _as_written(event: MemoryEvent) -> MemoryEvent:
    """Without what the palace knew before."""
    if event["event"] == "ADD":
        return event
    return {**event, "old_memory": None, "new_memory": None, "metadata": {}}


def _deleted(gone: Deleted, key: ApiKey) -> dict[str, Any]:
    kept = gone.kept if key.may("read") else []
    return {"deleted": int(gone), "kept": kept, "kept_total": gone.kept_total}


class HistoryView(FactView):
    @extend_schema(tags=TAG, responses={200: fact_shapes.MemoryHistoryLine(many=True)})
    def get(self, request: Request, memory_id: str) -> Response:
        """List all changes of a memory, oldest first; also of a deleted one."""
        return Response(self.memory.history(memory_id))


class ResetView(FactView):
    scopes: ClassVar[dict[str, str]] = {"POST": "admin"}

    @extend_schema(tags=TAG, request=None, responses={204: None})
    def post(self, request: Request) -> Response:
        """Delete all memories with their histories, in all palaces of the key.

        Messages given to the fact API are deleted for good with them. Those that came by a chat, a
        turn or an import stay in their drawers, and are not read for memories again.
        """
        self.memory.reset()
        return Response(status=204)


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
        tags=TAG,
        parameters=[fact_shapes.EntitiesRequest],
        responses={200: fact_shapes.GraphEntities},
    )
    def get(self, request: Request) -> Response:
        """List entities by kind and name."""
        return self._shown(self.read_query(fact_shapes.EntitiesRequest))

    @extend_schema(
        tags=TAG, request=fact_shapes.EntitiesRequest, responses={200: fact_shapes.GraphEntities}
    )
    def post(self, request: Request) -> Response:
        """List entities, with the scope in the body."""
        return self._shown(self.read(fact_shapes.EntitiesRequest))

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
        tags=TAG,
        parameters=[fact_shapes.RelationsRequest],
        responses={200: fact_shapes.GraphRelations},
    )
    def get(self, request: Request, name: str) -> Response:
        """List an entity's relations in both directions, nearest and then latest first."""
        params = self.read_query(fact_shapes.RelationsRequest)
        scope, palace, entity = self.named(name, params)
        facts = Fact.objects.within(palace).as_of(
            true_at=params["true_at"], known_at=params["known_at"]
        )
        edges = _edges(entity, scope.narrow(facts), params["hops"], params["limit"])
        return Response({"entity": _entity(entity), "results": [_edge(*each) for each in edges]})


class TimelineView(GraphView):
    @extend_schema(
        tags=TAG,
        parameters=[fact_shapes.TimelineRequest],
        responses={200: fact_shapes.EntityTimeline},
    )
    def get(self, request: Request, name: str) -> Response:
        """List everything that became true about an entity, in chronological order.

        Includes what is no longer true; excludes what was never true.
        """
        params = self.read_query(fact_shapes.TimelineRequest)
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

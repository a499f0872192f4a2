"""/namespaces/: entries of working memory, as a session, a patrol or a subagent has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.memory_service.shapes import ExactText, Shape
from api.rest.problems import not_found
from api.rest.working_memory.palace_lookup import ShortView, Whose
from palace.sdk.arguments import MOST_RESULTS
from palace.sdk.working import WorkingMemory
from palace.working.names import KINDS
from palace.working.search import LIMIT

TAG = ["working memory"]
KIND = OpenApiParameter("kind", str, OpenApiParameter.PATH, enum=KINDS)
PREFIX = "How their paths begin, in whole parts; empty: all there are. Else this namespace's."


class EntriesAsked(Whose):
    prefix = ExactText(
        required=False, allow_null=True, allow_blank=True, default=None, help_text=PREFIX
    )


class EntriesSearched(EntriesAsked):
    query = ExactText(
        required=False, allow_blank=True, default="", help_text="Without words, the newest first."
    )
    category = ExactText(
        required=False, allow_blank=True, default="", help_text="It, or one below it."
    )
    tags = serializers.ListField(
        child=ExactText(), required=False, default=list, help_text="An entry has all of them."
    )
    limit = serializers.IntegerField(
        required=False, default=LIMIT, min_value=1, max_value=MOST_RESULTS
    )


class EntryPut(Whose):
    value = ExactText(allow_blank=True, help_text="Kept to the byte.")
    ttl_seconds = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        help_text="How long it is kept after each use; five minutes unless given.",
    )
    category = ExactText(required=False, allow_blank=True, default="")
    tags = serializers.ListField(child=ExactText(), required=False, default=list)


class EntryShown(Shape):
    key = serializers.CharField(help_text="Its full path.")
    value = serializers.CharField()
    stored_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(help_text="Unless it is used before.")
    category = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())


class EntryFound(EntryShown):
    score = serializers.FloatField(help_text="BM25, from 0.")


class EntriesShown(Shape):
    entries = EntryShown(many=True)


class EntriesFound(Shape):
    entries = EntryFound(many=True)


class EntryDeleted(Shape):
    deleted = serializers.BooleanField(help_text="Whether there was such an entry.")


class Inventory(Shape):
    inventory = serializers.CharField(help_text="A line for each; empty where there is none.")


class NamespaceView(ShortView):
    def working(
        self, kind: str, name: str, asked: Mapping[str, Any] | None = None
    ) -> WorkingMemory:
        return self.memory.working(f"{kind}/{name}", user_id=self.user(asked))


class EntriesView(NamespaceView):
    @extend_schema(tags=TAG, parameters=[KIND, EntriesAsked], responses={200: EntriesShown})
    def get(self, request: Request, kind: str, name: str) -> Response:
        """The entries of this namespace, or those whose path begins so, by path."""
        prefix = self.read_query(EntriesAsked)["prefix"]
        return Response({"entries": self.working(kind, name).list(prefix)})


class EntriesSearchView(NamespaceView):
    only_reads: ClassVar[bool] = True

    @extend_schema(
        tags=TAG, parameters=[KIND, Whose], request=EntriesSearched, responses={200: EntriesFound}
    )
    def post(self, request: Request, kind: str, name: str) -> Response:
        """The entries that have one of the words, best first."""
        asked = self.read(EntriesSearched)
        found = self.working(kind, name, asked).search(
            asked["query"],
            category=asked["category"],
            tags=asked["tags"],
            prefix=asked["prefix"],
            limit=asked["limit"],
        )
        return Response({"entries": found})


class EntryView(NamespaceView):
    @extend_schema(tags=TAG, parameters=[KIND, Whose], responses={200: EntryShown})
    def get(self, request: Request, kind: str, name: str, key: str) -> Response:
        """An entry of this namespace, or one by its full path. Its time begins anew."""
        entry = self.working(kind, name).get(key)
        if entry is None:
            raise not_found()
        return Response(entry)

    @extend_schema(
        tags=TAG, parameters=[KIND, Whose], request=EntryPut, responses={200: EntryShown}
    )
    def put(self, request: Request, kind: str, name: str, key: str) -> Response:
        """Keep a text under a key of this namespace, in place of what was there.

        409 where the namespace is full, 403 where the key is a path that leads to another.
        """
        asked = self.read(EntryPut)
        entry = self.working(kind, name, asked).set(
            key,
            asked["value"],
            ttl_seconds=asked["ttl_seconds"],
            category=asked["category"],
            tags=asked["tags"],
        )
        return Response(entry)

    @extend_schema(tags=TAG, parameters=[KIND, Whose], request=None, responses={200: EntryDeleted})
    def delete(self, request: Request, kind: str, name: str, key: str) -> Response:
        """Delete an entry of this namespace."""
        return Response({"deleted": self.working(kind, name).delete(key)})


class InventoryView(NamespaceView):
    @extend_schema(tags=TAG, parameters=[KIND, Whose], responses={200: Inventory})
    def get(self, request: Request, kind: str, name: str) -> Response:
        """What a model is told of these entries: which there are, not what they say."""
        return Response({"inventory": self.working(kind, name).inventory()})

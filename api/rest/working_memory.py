"""/namespaces/, /working-memory/ and /ledger/: what is kept for a while, in Redis.

Entries under paths, the fields of a conversation, and the items already in its prompt, so that none
is injected twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.base import ApiView
from api.rest.parsing import ExactText, Shape
from api.rest.problems import Problem, not_found
from language.storable import ID_LENGTH
from palace.recall import MOST_QUERY_CHARS
from palace.sdk import Memory
from palace.sdk.arguments import MOST_RESULTS
from palace.sdk.working import ConversationMemory, WorkingMemory
from palace.working import DEFAULT_LIMIT, NAMESPACE_KINDS
from palace.working.ledger import INJECTED, Ledger, LedgerEntry

TAG = ["working memory"]
KIND = OpenApiParameter("kind", str, OpenApiParameter.PATH, enum=NAMESPACE_KINDS)
PREFIX = "A path prefix, in whole parts; empty: all entries. By default this namespace."
LEDGER_TAG = ["ledger"]


def user_field() -> serializers.CharField:
    said = "Whose palace; omitted, your own. In the query string or the body."
    return ExactText(required=False, allow_null=True, default=None, help_text=said)


class PalaceRequest(Shape):
    user_id = user_field()


class WorkingMemoryApiView(ApiView):
    @property
    def memory(self) -> Memory:
        """The SDK's Memory, limited to the palaces of the key."""
        return Memory(self.key.owner, subject=self.key.subject)

    def user(self, params: Mapping[str, Any] | None = None) -> str | None:
        """
        Args:
            params: The body, if any.

        Raises:
            Problem: 400, query string and body disagree.
        """
        given = [self.read_query(PalaceRequest)["user_id"], (params or {}).get("user_id")]
        named = {user for user in given if user is not None}
        if len(named) > 1:
            said = "The address names one user_id and the body another. Send one of them."
            raise Problem(400, "bad_input", said)
        return next(iter(named), None)


class EntriesRequest(PalaceRequest):
    prefix = ExactText(
        required=False, allow_null=True, allow_blank=True, default=None, help_text=PREFIX
    )


class EntriesSearched(EntriesRequest):
    query = ExactText(
        required=False,
        allow_blank=True,
        default="",
        max_length=MOST_QUERY_CHARS,
        help_text="Words; if empty, the newest first.",
    )
    category = ExactText(
        required=False, allow_blank=True, default="", help_text="This category or one below it."
    )
    tags = serializers.ListField(
        child=ExactText(), required=False, default=list, help_text="Entries must have all of them."
    )
    limit = serializers.IntegerField(
        required=False, default=DEFAULT_LIMIT, min_value=1, max_value=MOST_RESULTS
    )


class EntryPut(PalaceRequest):
    value = ExactText(allow_blank=True, help_text="Stored verbatim.")
    ttl_seconds = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Lifetime after each use; by default five minutes.",
    )
    category = ExactText(required=False, allow_blank=True, default="")
    tags = serializers.ListField(child=ExactText(), required=False, default=list)


class EntryShown(Shape):
    key = serializers.CharField(help_text="The full path.")
    value = serializers.CharField()
    stored_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(help_text="Each use extends it.")
    category = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())


class EntryFound(EntryShown):
    score = serializers.FloatField(help_text="BM25, from 0.")


class EntriesShown(Shape):
    entries = EntryShown(many=True)


class EntriesFound(Shape):
    entries = EntryFound(many=True)


class EntryDeleted(Shape):
    deleted = serializers.BooleanField(help_text="Whether the entry existed.")


class Inventory(Shape):
    inventory = serializers.CharField(help_text="One line per entry; empty if there are none.")


class NamespaceView(WorkingMemoryApiView):
    def working(
        self, kind: str, name: str, params: Mapping[str, Any] | None = None
    ) -> WorkingMemory:
        return self.memory.working(f"{kind}/{name}", user_id=self.user(params))


class EntriesView(NamespaceView):
    @extend_schema(tags=TAG, parameters=[KIND, EntriesRequest], responses={200: EntriesShown})
    def get(self, request: Request, kind: str, name: str) -> Response:
        """List the entries of this namespace or a path prefix, by path."""
        prefix = self.read_query(EntriesRequest)["prefix"]
        return Response({"entries": self.working(kind, name).list(prefix)})


class EntriesSearchView(NamespaceView):
    only_reads: ClassVar[bool] = True

    @extend_schema(
        tags=TAG,
        parameters=[KIND, PalaceRequest],
        request=EntriesSearched,
        responses={200: EntriesFound},
    )
    def post(self, request: Request, kind: str, name: str) -> Response:
        """Search entries that contain any of the words, best first."""
        params = self.read(EntriesSearched)
        found = self.working(kind, name, params).search(
            params["query"],
            category=params["category"],
            tags=params["tags"],
            prefix=params["prefix"],
            limit=params["limit"],
        )
        return Response({"entries": found})


class EntryView(NamespaceView):
    @extend_schema(tags=TAG, parameters=[KIND, PalaceRequest], responses={200: EntryShown})
    def get(self, request: Request, kind: str, name: str, key: str) -> Response:
        """Get an entry by name or full path; this renews its expiry."""
        entry = self.working(kind, name).get(key)
        if entry is None:
            raise not_found()
        return Response(entry)

    @extend_schema(
        tags=TAG, parameters=[KIND, PalaceRequest], request=EntryPut, responses={200: EntryShown}
    )
    def put(self, request: Request, kind: str, name: str, key: str) -> Response:
        """Store a text under a key of this namespace, replacing any previous one.

        409 where the namespace is full, 403 where the key is a path that leads to another.
        """
        params = self.read(EntryPut)
        entry = self.working(kind, name, params).set(
            key,
            params["value"],
            ttl_seconds=params["ttl_seconds"],
            category=params["category"],
            tags=params["tags"],
        )
        return Response(entry)

    @extend_schema(
        tags=TAG, parameters=[KIND, PalaceRequest], request=None, responses={200: EntryDeleted}
    )
    def delete(self, request: Request, kind: str, name: str, key: str) -> Response:
        """Delete an entry of this namespace."""
        return Response({"deleted": self.working(kind, name).delete(key)})


class InventoryView(NamespaceView):
    @extend_schema(tags=TAG, parameters=[KIND, PalaceRequest], responses={200: Inventory})
    def get(self, request: Request, kind: str, name: str) -> Response:
        """An inventory for a model: which entries there are, without their values."""
        return Response({"inventory": self.working(kind, name).inventory()})


class FieldsPut(PalaceRequest):
    fields = serializers.DictField(  # type: ignore[assignment]
        help_text="JSON values by name; `scratchpad` is a text, `entities` a list."
    )
    ttl_seconds = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Lifetime of all fields after each use; by default a day.",
    )


class FieldsNamed(PalaceRequest):
    fields = serializers.ListField(  # type: ignore[assignment]
        child=ExactText(), required=False, allow_null=True, default=None
    )


class FieldsShown(Shape):
    conversation_id = serializers.CharField()
    fields = serializers.DictField(  # type: ignore[assignment]
        help_text="By name; empty if there are none."
    )


class FieldsDeleted(Shape):
    deleted = serializers.IntegerField(help_text="The number of deleted fields.")


NAMES = OpenApiParameter(
    "fields",
    OpenApiTypes.STR,
    many=True,
    description="Only these; by default all. Alternatively send a body `{fields: […]}`.",
)


class WorkingMemoryView(WorkingMemoryApiView):
    @extend_schema(tags=TAG, parameters=[PalaceRequest], responses={200: FieldsShown})
    def get(self, request: Request, conversation_id: str) -> Response:
        """Get all fields of a conversation; this renews their expiry."""
        return _shown(self.memory.conversation(conversation_id, user_id=self.user()))

    @extend_schema(
        tags=TAG, parameters=[PalaceRequest], request=FieldsPut, responses={200: FieldsShown}
    )
    def put(self, request: Request, conversation_id: str) -> Response:
        """Set these fields, leave the others, and return all; this renews their expiry.

        A key that may not read gets back only what it has set.

        413 where all together would be larger than 64 KB: then nothing is set.
        """
        params = self.read(FieldsPut)
        conversation = self.memory.conversation(conversation_id, user_id=self.user(params))
        conversation.put(params["fields"], ttl_seconds=params["ttl_seconds"])
        return _shown(conversation, None if self.key.may("read") else params["fields"])

    @extend_schema(
        tags=TAG,
        parameters=[PalaceRequest, NAMES],
        request=FieldsNamed,
        responses={200: FieldsDeleted},
    )
    def delete(self, request: Request, conversation_id: str) -> Response:
        """Delete these fields, or all of the conversation."""
        params = self.read(FieldsNamed)
        conversation = self.memory.conversation(conversation_id, user_id=self.user(params))
        return Response({"deleted": conversation.delete(self._names(params))})

    def _names(self, params: dict[str, Any]) -> list[str] | None:
        in_address = self.request.query_params.getlist("fields")
        if params["fields"] is None and not in_address:
            return None
        return [*(params["fields"] or ()), *in_address]


def _shown(conversation: ConversationMemory, names: Collection[str] | None = None) -> Response:
    """
    Args:
        names: Only these fields; None: all.
    """
    fields = conversation.get()
    if names is not None:
        fields = {name: fields[name] for name in names if name in fields}
    return Response({"conversation_id": conversation.conversation_id, "fields": fields})


class ItemNamed(PalaceRequest):
    item = ExactText(max_length=ID_LENGTH, help_text="Any id, such as a skill's name.")


class ItemMarked(ItemNamed):
    value = ExactText(required=False, default=INJECTED, max_length=ID_LENGTH, help_text="The mark.")


class LedgerShown(Shape):
    conversation_id = serializers.CharField()
    items = serializers.DictField(child=serializers.CharField(), help_text="The mark of each item.")


class ItemShown(Shape):
    item = serializers.CharField()
    injected = serializers.BooleanField()
    value = serializers.CharField(allow_null=True, help_text="The item's mark.")


class ItemEvicted(Shape):
    item = serializers.CharField()
    evicted = serializers.BooleanField(help_text="Whether it was marked.")


class LedgerView(WorkingMemoryApiView):
    @extend_schema(tags=LEDGER_TAG, parameters=[PalaceRequest], responses={200: LedgerShown})
    def get(self, request: Request, conversation_id: str) -> Response:
        """List all items in the conversation's prompt."""
        return Response({"conversation_id": conversation_id, "items": self.items(conversation_id)})

    def items(self, conversation_id: str) -> dict[str, str]:
        palace = self.palace(self.user())
        entries = Ledger(palace, conversation_id).get() if palace else {}
        return {name: entries[name].value for name in sorted(entries)}


class StepView(LedgerView):
    """POST acts on one item; GET reads the ledger of a conversation whose id ends in the verb."""

    step: ClassVar[str]

    @extend_schema(exclude=True, parameters=[PalaceRequest])
    def get(self, request: Request, conversation_id: str) -> Response:
        whole = f"{conversation_id}/{self.step}"
        if not self.items(whole):
            raise MethodNotAllowed("GET")
        return super().get(request, whole)


class CheckView(StepView):
    only_reads: ClassVar[bool] = True
    step = "check"

    @extend_schema(
        tags=LEDGER_TAG, parameters=[PalaceRequest], request=ItemNamed, responses={200: ItemShown}
    )
    def post(self, request: Request, conversation_id: str) -> Response:
        """Whether an item is in the prompt."""
        params = self.read(ItemNamed)
        palace = self.palace(self.user(params))
        entry = Ledger(palace, conversation_id).check(params["item"]) if palace else None
        return _item_shown(params["item"], entry)


class MarkView(StepView):
    step = "mark"

    @extend_schema(
        tags=LEDGER_TAG, parameters=[PalaceRequest], request=ItemMarked, responses={200: ItemShown}
    )
    def post(self, request: Request, conversation_id: str) -> Response:
        """Mark an item as in the prompt; idempotent."""
        params = self.read(ItemMarked)
        entry = LedgerEntry(params["item"], params["value"])
        Ledger(self.palace_made(self.user(params)), conversation_id).mark(entry)
        return _item_shown(entry.item, entry)


class EvictView(StepView):
    step = "evict"

    @extend_schema(
        tags=LEDGER_TAG, parameters=[PalaceRequest], request=ItemNamed, responses={200: ItemEvicted}
    )
    def post(self, request: Request, conversation_id: str) -> Response:
        """Remove an item's mark, so that it can be injected again."""
        params = self.read(ItemNamed)
        palace = self.palace(self.user(params))
        gone = Ledger(palace, conversation_id).evict([params["item"]]) if palace else 0
        return Response({"item": params["item"], "evicted": bool(gone)})


def _item_shown(item: str, entry: LedgerEntry | None) -> Response:
    value = None if entry is None else entry.value
    return Response({"item": item, "injected": entry is not None, "value": value})

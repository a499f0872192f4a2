"""/ledger/: items already in a conversation's prompt, so that none is injected twice."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.parsing import ExactText, Shape
from api.rest.working_memory import PalaceRequest, WorkingMemoryApiView
from language.storable import ID_LENGTH
from palace.working.ledger import INJECTED, Ledger, LedgerEntry

TAG = ["ledger"]


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
    @extend_schema(tags=TAG, parameters=[PalaceRequest], responses={200: LedgerShown})
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
        tags=TAG, parameters=[PalaceRequest], request=ItemNamed, responses={200: ItemShown}
    )
    def post(self, request: Request, conversation_id: str) -> Response:
        """Whether an item is in the prompt."""
        params = self.read(ItemNamed)
        palace = self.palace(self.user(params))
        entry = Ledger(palace, conversation_id).check(params["item"]) if palace else None
        return _shown(params["item"], entry)


class MarkView(StepView):
    step = "mark"

    @extend_schema(
        tags=TAG, parameters=[PalaceRequest], request=ItemMarked, responses={200: ItemShown}
    )
    def post(self, request: Request, conversation_id: str) -> Response:
        """Mark an item as in the prompt; idempotent."""
        params = self.read(ItemMarked)
        entry = LedgerEntry(params["item"], params["value"])
        Ledger(self.palace_made(self.user(params)), conversation_id).mark(entry)
        return _shown(entry.item, entry)


class EvictView(StepView):
    step = "evict"

    @extend_schema(
        tags=TAG, parameters=[PalaceRequest], request=ItemNamed, responses={200: ItemEvicted}
    )
    def post(self, request: Request, conversation_id: str) -> Response:
        """Remove an item's mark, so that it can be injected again."""
        params = self.read(ItemNamed)
        palace = self.palace(self.user(params))
        gone = Ledger(palace, conversation_id).evict([params["item"]]) if palace else 0
        return Response({"item": params["item"], "evicted": bool(gone)})


def _shown(item: str, entry: LedgerEntry | None) -> Response:
    value = None if entry is None else entry.value
    return Response({"item": item, "injected": entry is not None, "value": value})

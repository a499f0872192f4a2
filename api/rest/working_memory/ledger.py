"""/ledger/: what was put before a conversation's model, so that it is not put there twice."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.memory_service.shapes import ExactText, Shape
from api.rest.working_memory.palace_lookup import ShortView, Whose
from palace.storable import ID_LENGTH
from palace.working.ledger import INJECTED, Entry, Ledger

TAG = ["ledger"]


class ItemNamed(Whose):
    item = ExactText(max_length=ID_LENGTH, help_text="Any name, such as that of a skill.")


class ItemMarked(ItemNamed):
    value = ExactText(
        required=False, default=INJECTED, max_length=ID_LENGTH, help_text="What to mark it with."
    )


class LedgerShown(Shape):
    conversation_id = serializers.CharField()
    items = serializers.DictField(
        child=serializers.CharField(), help_text="What each was marked with."
    )


class ItemShown(Shape):
    item = serializers.CharField()
    injected = serializers.BooleanField()
    value = serializers.CharField(allow_null=True, help_text="What it was marked with.")


class ItemEvicted(Shape):
    item = serializers.CharField()
    evicted = serializers.BooleanField(help_text="Whether it was marked.")


class LedgerView(ShortView):
    @extend_schema(tags=TAG, parameters=[Whose], responses={200: LedgerShown})
    def get(self, request: Request, conversation_id: str) -> Response:
        """All that was put before the conversation's model."""
        return Response({"conversation_id": conversation_id, "items": self.items(conversation_id)})

    def items(self, conversation_id: str) -> dict[str, str]:
        palace = self.palace(self.user())
        entries = Ledger(palace, conversation_id).get() if palace else {}
        return {name: entries[name].value for name in sorted(entries)}


class StepView(LedgerView):
    """POST acts on one item; GET reads the ledger of a conversation whose id ends in the step."""

    step: ClassVar[str]

    @extend_schema(exclude=True)
    def get(self, request: Request, conversation_id: str) -> Response:
        whole = f"{conversation_id}/{self.step}"
        if not self.items(whole):
            raise MethodNotAllowed("GET")
        return super().get(request, whole)


class CheckView(StepView):
    only_reads: ClassVar[bool] = True
    step = "check"

    @extend_schema(tags=TAG, parameters=[Whose], request=ItemNamed, responses={200: ItemShown})
    def post(self, request: Request, conversation_id: str) -> Response:
        """Whether an item was put before the model."""
        asked = self.read(ItemNamed)
        palace = self.palace(self.user(asked))
        entry = Ledger(palace, conversation_id).check(asked["item"]) if palace else None
        return _shown(asked["item"], entry)


class MarkView(StepView):
    step = "mark"

    @extend_schema(tags=TAG, parameters=[Whose], request=ItemMarked, responses={200: ItemShown})
    def post(self, request: Request, conversation_id: str) -> Response:
        """Note that an item was put before the model; safe to repeat."""
        asked = self.read(ItemMarked)
        entry = Entry(asked["item"], asked["value"])
        Ledger(self.palace_made(self.user(asked)), conversation_id).mark(entry)
        return _shown(entry.item, entry)


class EvictView(StepView):
    step = "evict"

    @extend_schema(tags=TAG, parameters=[Whose], request=ItemNamed, responses={200: ItemEvicted})
    def post(self, request: Request, conversation_id: str) -> Response:
        """Let an item be put before the model again."""
        asked = self.read(ItemNamed)
        palace = self.palace(self.user(asked))
        gone = Ledger(palace, conversation_id).evict([asked["item"]]) if palace else 0
        return Response({"item": asked["item"], "evicted": bool(gone)})


def _shown(item: str, entry: Entry | None) -> Response:
    value = None if entry is None else entry.value
    return Response({"item": item, "injected": entry is not None, "value": value})

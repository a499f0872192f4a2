"""The ledger of a conversation: what the model can see of it, and taking items out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from chat.models import Conversation, Message
from chat.prompt import window
from chat.views.conversations import the_conversation
from language.errors import WorkingMemoryAway
from palace.recall import DRAWER_ITEM, FACT_ITEM, Carried, load_carried
from palace.working.ledger import Ledger, LedgerEntry, within
from settings_app.pages import (
    PageRequest,
    signed_in_form,
)
from settings_app.row_tags import counted

LEDGER_AWAY = (
    "Loci’s short-term store (Redis) does not answer, so what the model sees cannot be "
    "shown. Try again in a moment."
)
TAKEN_OUT = "The model no longer sees it; it may be given again where it fits."
WAS_OUT = "The model had stopped seeing it already."


@dataclass(frozen=True, slots=True)
class Shown:
    """An item that the model can see.

    Attributes:
        carried: The drawer or fact; None where a program named something of its own.
        since: The message it was given with, if that is still there.
        left: How many more messages it stays, if they are short; None: until it is taken out.
    """

    entry: LedgerEntry
    carried: Carried | None
    since: Message | None
    left: int | None

    @property
    def is_fact(self) -> bool:
        return self.entry.item.startswith(FACT_ITEM)


@signed_in_form
def conversation_ledger(request: PageRequest, uuid: UUID) -> HttpResponse:
    """The page; posted to, it takes the `item` named out of the ledger."""
    conversation = the_conversation(request, uuid)
    ledger = Ledger(conversation.palace, str(conversation.uuid))
    try:
        if request.method == "POST":
            out = ledger.evict(request.POST.getlist("item"))
            messages.success(request, TAKEN_OUT if out else WAS_OUT)
            return redirect("conversation_ledger", conversation.uuid)
        shown = _shown(conversation, ledger.get())
    except WorkingMemoryAway:
        context = {"conversation": conversation, "error": LEDGER_AWAY}
        return render(request, "chat/ledger.html", context, status=503)
    context = {
        "conversation": conversation,
        "facts": [each for each in shown if each.is_fact],
        "drawers": [each for each in shown if each.carried and not each.is_fact],
        "others": [each for each in shown if not each.carried],
        "turns": counted(settings.CHAT_TURNS, "message"),
    }
    return render(request, "chat/ledger.html", context)


def _shown(conversation: Conversation, entries: dict[str, LedgerEntry]) -> list[Shown]:
    """The items that the next reply's model would see, newest first."""
    said = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    current = said.current().exclude(text="").order_by("-position")
    latest = list(current[: settings.CHAT_TURNS])
    turn = latest[0].position + 1 if latest else 0
    # The next message takes a place in the window.
    read = window(latest[: settings.CHAT_TURNS - 1]) if settings.CHAT_TURNS > 1 else []
    visible = within(entries, read[0].position if read else turn, turn)
    carried = load_carried(conversation.palace, visible)
    others = [
        entry for entry in visible.values() if not entry.item.startswith((DRAWER_ITEM, FACT_ITEM))
    ]
    rows: list[tuple[LedgerEntry, Carried | None]] = [(each.entry, each) for each in carried]
    rows += [(entry, None) for entry in sorted(others, key=lambda entry: entry.item)]
    return _rows(rows, latest, turn)


def _rows(
    entries: Sequence[tuple[LedgerEntry, Carried | None]], latest: Sequence[Message], turn: int
) -> list[Shown]:
    by_position = {message.position: message for message in latest}
    return [
        Shown(
            entry,
            carried,
            None if entry.turn is None else by_position.get(entry.turn),
            None if entry.turn is None else max(1, entry.turn + settings.CHAT_TURNS - turn),
        )
        for entry, carried in entries
    ]

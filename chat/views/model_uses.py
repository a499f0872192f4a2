"""The page that asks before a model is sent anything: what, where, for which uses, at what cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.conf import settings
from django.contrib import messages
from django.db import connection, transaction
from django.db.models import Count, F, Func, IntegerField, Sum
from django.http import HttpResponse
from django.shortcuts import redirect, render

from chat.reply_writer import CONTEXT_TOKENS
from llm import embedding, providers, usage
from llm.providers import Endpoint
from palace.models import Drawer, DrawerQuerySet, Room
from settings_app.forms import UsesForm
from settings_app.models import MemorySettings, ModelUse, settings_for_update, settings_of
from settings_app.pages import PageRequest, refuse_stale, signed_in_form, stored_values

TEMPLATE = "chat/model_uses.html"
# Bytes of text per token: about right for prose in most languages.
BYTES_A_TOKEN = 4
# Our instructions and the form of the answer, and a typical answer.
INSTRUCTIONS, ANSWER = 1600, 450
# Messages read with one call, at most; and a message of a chat, on average.
A_CALL, OF_A_MESSAGE = 10, 90
# A rerank: the question, and twenty passages of up to 900 characters.
RERANK_IN, RERANK_OUT = 4600, 120
REPLY_OUT = 400

# After an import whole rooms wait, which know their bytes: only the texts of others are measured.
_UNREAD = """
WITH waiting AS (
    SELECT palace_id, room_id, count(*) AS unread FROM palace_drawer
    WHERE palace_id = ANY(ARRAY(SELECT id FROM palace_palace WHERE owner_id = %(owner)s))
        AND trashed_at IS NULL AND facts_read_at IS NULL
    GROUP BY palace_id, room_id
)
SELECT coalesce(sum(unread), 0), coalesce(sum(
    CASE WHEN unread = kept_count THEN kept_bytes ELSE (
        SELECT sum(octet_length(text)) FROM palace_drawer drawer
        WHERE drawer.palace_id = waiting.palace_id AND drawer.room_id = waiting.room_id
            AND trashed_at IS NULL AND facts_read_at IS NULL
    ) END
), 0)
FROM waiting
JOIN palace_room room ON room.palace_id = waiting.palace_id AND room.id = waiting.room_id
"""

WHAT_IS_SENT = {
    ModelUse.REPLIES: "Your message, the messages before it in the same conversation, the agent’s "
    "instructions, and what is remembered about it. Programs that use the proxy send theirs.",
    ModelUse.FILING: "Every new conversation, once, in pieces, with the names of your wings; and "
    "once more to write its summary.",
    ModelUse.FACTS: "The same pieces, to find facts in them; and known facts to compare with.",
    ModelUse.RERANK: "Your question, and the twenty messages found for it.",
    ModelUse.DREAMS: "Facts that are known, and what you said since the last dream, to tidy up.",
}
WITHOUT = {
    ModelUse.REPLIES: "Without: replies quote what you said, word for word.",
    ModelUse.FILING: "Without: Loci finds topics and names by itself; summaries quote sentences.",
    ModelUse.FACTS: "Without: Loci finds facts by itself, but fewer.",
    ModelUse.RERANK: "Without: results stay in the order of their scores.",
    ModelUse.DREAMS: "Without: Loci finds by itself what is said twice, and what contradicts.",
}


@dataclass(frozen=True, slots=True)
class Amount:
    """
    Attributes:
        usd: None if the price is unknown.
    """

    tokens: int
    usd: Decimal | None

    @property
    def is_free(self) -> bool:
        return self.usd == 0


@dataclass(frozen=True, slots=True)
class Held:
    """Messages of all palaces of an account, and the bytes of their text."""

    messages: int = 0
    text_bytes: int = 0
    unfiled: int = 0
    unfiled_bytes: int = 0
    unread: int = 0
    unread_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One use, with its switch.

    Attributes:
        each: The likely amount of one use; for a dream, the maximum.
        waiting: The number of waiting messages, which are sent at once, and their amount.
        every: The amount for reading all messages again.
    """

    use: ModelUse
    is_on: bool
    each: Amount | None = None
    waiting: tuple[int, Amount] | None = None
    every: Amount | None = None

    @property
    def what(self) -> str:
        return WHAT_IS_SENT[self.use]

    @property
    def without(self) -> str:
        return WITHOUT[self.use]


@signed_in_form
def model_uses(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        chosen = settings_of(request.user.pk)
        return _page(request, UsesForm(instance=chosen), chosen)
    if request.POST.get("do") == "estimate":
        chosen = settings_of(request.user.pk)
        form = UsesForm(request.POST, instance=chosen)
        form.is_valid()
        return _page(request, form, chosen, status=200 if not form.errors else 400)
    with transaction.atomic():
        chosen = settings_for_update(request.user.pk)
        stored = stored_values(UsesForm(instance=chosen))
        waited, form = chosen.awaits_consent, UsesForm(request.POST, instance=chosen)
        refuse_stale(request, form, stored)
        if form.is_valid():
            form.store(agrees=True)
    if not form.is_valid():
        return _page(request, form, chosen, status=400)
    messages.success(request, "Connected." if waited else "Saved.")
    return redirect("model_uses")


def _page(
    request: PageRequest, form: UsesForm, chosen: MemorySettings, *, status: int = 200
) -> HttpResponse:
    connected = chosen.connection()
    embedder = embedding.deployment_model()
    context = {
        "form": form,
        "stored": stored_values(UsesForm(instance=settings_of(request.user.pk))),
        "chosen": chosen,
        "connected": connected,
        "held": (held := held_by(request.user.pk)),
        "rows": list(rows_of(chosen, connected.endpoint, held, form["uses"].value() or [])),
        "price": _known_price(connected.endpoint),
        "embedder": None if embedder.is_local else embedder,
        "embedder_host": _host_of(embedder.provider),
    }
    return render(request, TEMPLATE, context, status=status)


def _host_of(provider: str) -> str:
    if provider == providers.LOCAL:
        return ""
    return providers.endpoint(provider, "any", "any").host


def _known_price(endpoint: Endpoint | None) -> tuple[Decimal, Decimal] | None:
    """The price of a million tokens, read and written; None if unknown or without a model."""
    if endpoint is None:
        return None
    read, written = (usage.cost_at(endpoint, *of) for of in ((10**6, 0), (0, 10**6)))
    return None if read is None or written is None else (read, written)


def held_by(owner_id: int) -> Held:
    """Count messages of all palaces of the account, without the trash, which is not sent."""
    kept = Room.objects.filter(palace__owner=owner_id).aggregate(
        messages=Sum("kept_count", default=0), text_bytes=Sum("kept_bytes", default=0)
    )
    drawers = Drawer.objects.kept().filter(palace__owner=owner_id)
    unfiled, unfiled_bytes = _size_of(drawers.filter(mined_at=None))
    unread, unread_bytes = _unread_size(owner_id)
    return Held(
        kept["messages"],
        int(kept["text_bytes"]),
        unfiled,
        unfiled_bytes,
        unread,
        unread_bytes,
    )


def _size_of(drawers: DrawerQuerySet) -> tuple[int, int]:
    """The number of drawers, and the bytes of their texts."""
    length = Func(F("text"), function="octet_length", output_field=IntegerField())
    counts = drawers.aggregate(n=Count("pk"), size=Sum(length, default=0))
    return counts["n"], counts["size"]


def _unread_size(owner_id: int) -> tuple[int, int]:
    """Likewise of the drawers that were not read for facts."""
    with connection.cursor() as cursor:
        cursor.execute(_UNREAD, {"owner": owner_id})
        count, size = cursor.fetchone()
    return int(count), int(size)


def rows_of(
    chosen: MemorySettings, endpoint: Endpoint | None, held: Held, on: list[str]
) -> Iterator[Row]:
    """The likely cost of each use, by the number of messages."""
    prices = _Prices(endpoint)
    waiting = {
        ModelUse.FILING: (held.unfiled, held.unfiled_bytes),
        ModelUse.FACTS: (held.unread, held.unread_bytes),
    }
    shares_reading = ModelUse.FILING.value in on
    for use in ModelUse:
        row = Row(use, use.value in on)
        if use in waiting:
            count, size = waiting[use]
            yield Row(
                use,
                row.is_on,
                waiting=(count, prices.reading(use, count, size, shared=shares_reading)),
                every=prices.reading(use, held.messages, held.text_bytes, shared=shares_reading),
            )
        else:
            yield Row(use, row.is_on, each=prices.each(use, chosen))


class _Prices:
    def __init__(self, endpoint: Endpoint | None) -> None:
        self._endpoint = endpoint

    def of(self, tokens_in: int, tokens_out: int) -> Amount:
        asked = self._endpoint
        usd = usage.cost_at(asked, tokens_in, tokens_out) if asked is not None else None
        return Amount(tokens_in + tokens_out, usd)

    def reading(self, use: ModelUse, messages: int, size: int, *, shared: bool) -> Amount:
        """Reading messages in pieces; a second reading writes the summary, or compares facts."""
        calls, text = -(-messages // A_CALL), size // BYTES_A_TOKEN
        once = (text + calls * INSTRUCTIONS, calls * ANSWER)
        if use is ModelUse.FACTS:
            # With filing, one call reads a piece for both; what is left is the comparison.
            compared = (calls * INSTRUCTIONS, calls * ANSWER)
            once = (0, 0) if shared else once
            return self.of(once[0] + compared[0], once[1] + compared[1])
        return self.of(once[0] + text + calls * INSTRUCTIONS, once[1] + calls * ANSWER)

    def each(self, use: ModelUse, chosen: MemorySettings) -> Amount:
        if use is ModelUse.RERANK:
            return self.of(RERANK_IN, RERANK_OUT)
        if use is ModelUse.DREAMS:
            most = self.of(chosen.dream_limit_tokens, 0)
            usd = None if most.usd is None else min(most.usd, chosen.dream_limit_usd)
            return Amount(most.tokens, usd)
        return self.of(CONTEXT_TOKENS + settings.CHAT_TURNS * OF_A_MESSAGE, REPLY_OUT)

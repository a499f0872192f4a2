"""Memories for a request, before it is passed on."""

from __future__ import annotations

import logging
from datetime import datetime

from api.openai.message_filing import Place
from api.openai.message_text import History
from chat.reply_writer import CONTEXT_TOKENS
from palace.models import Palace
from palace.recall.deduplication import ConversationState
from palace.recall.recall import Recollection, recall
from palace.recall.request import RecallRequest
from palace.storable import digest
from palace.working.errors import WorkingMemoryAway

logger = logging.getLogger(__name__)


def recall_for(
    palace: Palace, history: History, place: Place, now: datetime, *, has_model: bool
) -> Recollection | None:
    """What the palace has on the last thing the person said; None where that has no words.

    Each request brings all that the model is to read, so the block carries what stays from before.
    """
    if not history.question.strip():
        return None
    # A program's name for its conversation may be any text; the ledger's is a plain word.
    talk = ConversationState(
        f"proxy-{digest(place.conversation)[:32]}", place.turn, place.since, carries=True
    )
    return recall(
        palace,
        RecallRequest(
            history.question,
            now=now,
            budget_tokens=CONTEXT_TOKENS,
            with_facts=True,
            exclude_ids=[each.key for each in place.told],
            conversation=talk if has_model else None,
        ),
    )


def context_of(found: Recollection | None) -> str:
    """The block; empty where nothing fits the question, though something came along unasked."""
    return found.context if found and not found.unasked else ""


def mark_given(palace: Palace, found: Recollection | None) -> None:
    """The model was sent its block: the ledger is told."""
    if found is None or found.injection is None or not context_of(found):
        return
    try:
        found.injection.mark(palace)
    except WorkingMemoryAway as error:
        logger.warning("What a model was given is not in its ledger: %s", error)

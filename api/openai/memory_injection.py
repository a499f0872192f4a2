"""Recall memories for a request before it is forwarded."""

from __future__ import annotations

import logging
from datetime import datetime

from api.openai.message_filing import Place
from api.openai.message_text import History
from chat.reply_writer import CONTEXT_TOKENS
from language.storable import digest
from palace.errors import WorkingMemoryAway
from palace.models import Palace
from palace.recall import ConversationState, RecallRequest, Recollection, recall

logger = logging.getLogger(__name__)


def recall_for(
    palace: Palace, history: History, place: Place, now: datetime, *, has_model: bool
) -> Recollection | None:
    """Recall for the person's last message; None if it has no words.

    Each request has the model's whole prompt, so the block repeats earlier items that still apply.
    """
    if not history.question.strip():
        return None
    # The ledger needs a plain word as id, and a program's conversation id may be any text.
    conversation = ConversationState(
        f"proxy-{digest(place.conversation)[:32]}", place.turn, place.since, carries=True
    )
    return recall(
        palace,
        RecallRequest(
            history.question,
            now=now,
            budget_tokens=CONTEXT_TOKENS,
            with_facts=True,
            exclude_ids=[each.key for each in place.messages],
            conversation=conversation if has_model else None,
        ),
    )


def context_of(found: Recollection | None) -> str:
    """The context block; empty if nothing fits the question, even with unrequested hits."""
    return found.context if found and not found.is_opening else ""


def mark_given(palace: Palace, found: Recollection | None) -> None:
    """Record in the ledger that the model received the block."""
    if found is None or found.injection is None or not context_of(found):
        return
    try:
        found.injection.mark(palace)
    except WorkingMemoryAway as error:
        logger.warning("The ledger was not updated: %s", error)

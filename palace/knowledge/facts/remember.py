"""Remember: messages into drawers, and what they say into facts. The way in for every door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from language.transcripts import Transcript, Turn
from palace.knowledge.facts.fact_learning import learn
from palace.knowledge.facts.fact_writer import Remembered
from palace.knowledge.facts.ingestion_options import keep
from palace.knowledge.facts.scope import DEFAULT_OPTIONS, ExtractionOptions, Scope
from palace.models import Drawer, Palace
from palace.storage import file_transcript

__all__ = ["Remembered", "remember"]


def remember(
    palace: Palace,
    messages: str | Sequence[Turn],
    *,
    agent: str = "",
    run: str = "",
    conversation: str = "",
    metadata: Mapping[str, Any] | None = None,
    options: ExtractionOptions = DEFAULT_OPTIONS,
    source: str = "api",
    now: datetime | None = None,
) -> list[Remembered]:
    """Keep messages word by word, and what they say as facts.

    Call it outside of a transaction: it may ask models, which takes seconds. The drawers wait to
    be mined, like any others. Should the process die before they are read for facts, they are
    read then, for the same agent and run, and in the same manner.

    Args:
        messages: One text that the user says, or a conversation in order.
        agent: Facts are kept for, and judged beside those of, this agent; likewise `run`, which
            is also the conversation that the messages belong to.
        conversation: That where no run is named; one of its own unless given.
        metadata: Kept with each fact that is made.
        manner: How they are read and judged, where not as ever; prompts have no effect without
            a model.
        source: Which door brings it.
        now: When a text was said; the present unless given.

    Returns:
        One line a judgement, in the order of the messages; none where nothing was worth keeping.
    """
    turns = turns_of(messages, now or timezone.now())
    scope = Scope(source, agent, run, metadata or {})
    named = run or conversation or str(uuid4())
    with transaction.atomic():
        drawers = _filed(palace, Transcript(source, named, "", tuple(turns), agent))
        keep(palace, drawers, scope, options)
    return learn(palace, drawers, scope, options)


def _filed(palace: Palace, transcript: Transcript) -> list[Drawer]:
    """The drawers of these messages, in order, as far as they are to be read."""
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return []
    drawers = Drawer.objects.within(palace).filter(
        source=transcript.source,
        conversation=filed.room.external_id,
        external_id__in=[turn.external_id for turn in transcript.turns],
        facts_read_at=None,
        trashed_at=None,
    )
    return list(drawers.order_by("position"))


def turns_of(messages: str | Sequence[Turn], now: datetime) -> Sequence[Turn]:
    """A text is one message of the user; each gets an id of its own: said twice, it is two."""
    if isinstance(messages, str):
        return [Turn(str(uuid4()), "user", messages, now)]
    return messages

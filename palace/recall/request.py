"""RecallRequest: the options of a recall, for every caller."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from palace.recall.context_format import PackableTurn
from palace.recall.deduplication import ConversationState


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """What to find, and how.

    Attributes:
        query: The question; must not be blank.
        top_k: At most this many hits, from 1; None: the owner's setting.
        now: The moment that "yesterday" refers to; None: the present, by the owner's clock.
        as_of: Ignore what was said later.
        recipe: Name of a recipe; None: the owner's setting.
        budget_tokens: Length of the context block; None: all hits.
        exclude_ids: Keys of drawers that are already in the prompt.
        rerank: Whether a model reorders the best hits; None: the owner's setting.
        with_facts: Put known facts before the drawers in the context block, as many as the recipe
            says.
        session: The latest turns of the conversation, in order; they end the context block.
        agent: Include the facts kept for this agent; likewise `run`.
        conversation: The conversation to answer in: what its model has already is not repeated.
            Call `injection.mark()` once the block was sent. An opening message that names no
            subject, such as "hi", gets the latest drawers.
        store_trace: Store a trace (off in evaluations).
    """

    query: str
    top_k: int | None = None
    now: datetime | None = None
    as_of: datetime | None = None
    recipe: str | None = None
    budget_tokens: int | None = None
    exclude_ids: Collection[int] = ()
    rerank: bool | None = None
    with_facts: bool = False
    session: Sequence[PackableTurn] = ()
    agent: str = ""
    run: str = ""
    conversation: ConversationState | None = None
    store_trace: bool = True

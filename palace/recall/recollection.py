"""Recollection: the result of a recall."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from palace.models import Drawer
from palace.models.aaak import Pointer
from palace.recall.carried_context import Carried
from palace.recall.context_builder import Citation
from palace.recall.deduplication import Injection
from palace.recall.facts import KnownFact


@dataclass(frozen=True, slots=True)
class Hit:
    """A drawer found by a recall.

    Attributes:
        score: In weighted standard deviations; higher is better; comparable within one recall.
        signals: The contribution of each signal; they sum to the score.
        passage: Start and end of the passage closest to the question.
        place_before: Rank by score, from 1, if a model reranked the hits.
        is_informative: False for a message that only asks or quotes: it may be a hit, but the
            block leaves it out, unless the query asks for earlier questions.
    """

    drawer: Drawer
    pointer: Pointer
    score: float
    signals: Mapping[str, float]
    passage: tuple[int, int]
    place_before: int | None = None
    is_informative: bool = True


@dataclass(frozen=True, slots=True)
class Recollection:
    """The result of a recall.

    Attributes:
        uuid: Also the id of the stored trace.
        hits: Best first.
        facts: The facts in the block, best first.
        context: The `<memory_context>` block within the budget; may be empty.
        citations: The source of each record in the block, in its order.
        notes: Sentences on what was degraded or left out.
        carried: Lines carried from earlier in the conversation, newest first.
        injection: The ledger update to apply once the block was sent.
        is_opening: Nothing matched the opening message, so the hits are the latest drawers.
    """

    uuid: uuid.UUID
    query: str
    hits: tuple[Hit, ...]
    context: str
    context_tokens: int
    notes: tuple[str, ...]
    duration_ms: float
    facts: tuple[KnownFact, ...] = ()
    citations: tuple[Citation, ...] = ()
    carried: tuple[Carried, ...] = ()
    injection: Injection | None = None
    is_opening: bool = False

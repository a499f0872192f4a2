"""Recollection: what a recall brings back."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from palace.aaak import Pointer
from palace.models import Drawer
from palace.recall.carried_context import Carried
from palace.recall.context_builder import Citation
from palace.recall.deduplication import Injection
from palace.recall.facts import KnownFact


@dataclass(frozen=True, slots=True)
class Hit:
    """A drawer that was found.

    Attributes:
        score: In weighted standard deviations; higher is better, compares within one recall only.
        signals: The share of each signal in the score; they add up to it.
        passage: Start and end of the stretch that is closest to the question.
        place_before: Its place by score, from 1, where a model was asked for the order.
        tells: Whether it tells anything. An earlier question may be found, but the block does
            without it, unless the query is after what was asked.
    """

    drawer: Drawer
    pointer: Pointer
    score: float
    signals: Mapping[str, float]
    passage: tuple[int, int]
    place_before: int | None = None
    tells: bool = True


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a recall brought back.

    Attributes:
        uuid: Also of its stored trace.
        hits: Best first.
        facts: What is known and was put into the block, best first.
        context: The `<memory_context>` block of what fits the budget; may be empty.
        citations: What each record in the block rests on, in its order.
        notes: What was degraded or left out, in sentences.
        carried: What else the block holds, from earlier in the conversation, the newest first.
        injection: For the conversation's ledger, once the block was really sent.
        unasked: Nothing fitted, so the hits are what was said last, to open a conversation with.
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
    unasked: bool = False

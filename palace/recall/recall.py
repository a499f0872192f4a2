"""Recall: the single retrieval path of chat, pages, APIs and benchmarks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from language.english.question_subject import is_plain, subject_of
from palace.models import Drawer, Palace
from palace.recall.deduplication import (
    Composed,
    ConversationState,
    LedgerSnapshot,
    compose,
    read_ledger,
)
from palace.recall.facts import KnownFact, fact_floor, facts_for
from palace.recall.query import Query
from palace.recall.recollection import Hit, Recollection
from palace.recall.request import RecallRequest
from palace.recall.request_context import RequestContext, read_request_context
from palace.recall.retrieval import Found, search
from palace.recall.trace import keep_trace

__all__ = ["Hit", "RecallRequest", "Recollection", "recall"]
NOTHING_FOUND = "Nothing matched, so the latest messages are included."


def recall(palace: Palace, request: RecallRequest) -> Recollection:
    """Find the drawers that answer the question best, with the contribution of each signal.

    Call it outside of a transaction: it may call models, which takes seconds.

    Raises:
        EmptyQuery: the query is blank.
        BadInput: the conversation's id is invalid.
        UnknownRecipe: no recipe has that name.
    """
    started = time.perf_counter()
    ledger = read_ledger(palace, request.conversation)
    context = read_request_context(palace, request)
    found = search(palace, request, context)
    known = _known(palace, request, context, found) if request.with_facts else []
    hits = found.hits
    is_opening = _is_opening(request.conversation, found.question, found_any=bool(hits or known))
    if is_opening:
        most = min(context.recipe.opening, context.limit)
        hits = latest_hits(palace, request.as_of, request.exclude_ids, most)
    uninformative = frozenset(place for place, hit in enumerate(hits) if not hit.is_informative)
    shares, budget = context.recipe.shares, request.budget_tokens
    block = compose(palace, ledger, hits, known, budget, request.session, shares, uninformative)
    recollection = Recollection(
        uuid=uuid.uuid4(),
        query=found.question.text,
        hits=hits,
        facts=tuple(known[place] for place in block.packed.facts),
        context=block.packed.context,
        context_tokens=block.packed.tokens,
        citations=block.packed.citations,
        carried=block.carried,
        injection=block.injection,
        is_opening=is_opening and bool(hits),
        notes=tuple(_notes(found, ledger, block, hits, is_opening=is_opening)),
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    if request.store_trace:
        keep_trace(palace, found.question, context.recipe, found.scored, recollection, known, block)
    return recollection


def _is_opening(
    conversation: ConversationState | None, question: Query, *, found_any: bool
) -> bool:
    """Whether this is a conversation's first message without a subject ("hi") or without any hit
    or fact, so that the latest drawers are used instead. A named subject without a hit gets none.
    """
    if conversation is None or conversation.turn != 0:
        return False
    return is_plain(question) or not (found_any or subject_of(question))


def _known(
    palace: Palace, request: RecallRequest, context: RequestContext, found: Found
) -> list[KnownFact]:
    floor = fact_floor(found.question, is_refused=found.scored.relevance.is_refused)
    return facts_for(
        palace,
        found.space,
        found.question,
        floor=floor,
        agent=request.agent,
        run=request.run,
        limit=context.recipe.facts,
    )


def _notes(
    found: Found, ledger: LedgerSnapshot, block: Composed, hits: Sequence[Hit], *, is_opening: bool
) -> Iterator[str]:
    """Sentences on what was degraded or left out."""
    packed = block.packed
    yield from (note for note in (found.question.note, found.note, ledger.note) if note)
    if is_opening and hits:
        yield NOTHING_FOUND
    if too_long := [place for place in packed.left_out if hits[place].is_informative]:
        yield f"{len(too_long)} of {len(hits)} did not fit the budget of tokens."
    if packed.facts_left_out:
        facts = len(packed.facts_left_out) + len(packed.facts)
        yield f"{len(packed.facts_left_out)} of {facts} facts did not fit the budget of tokens."


def latest_hits(
    palace: Palace, as_of: datetime | None, exclude_ids: Collection[int], limit: int
) -> tuple[Hit, ...]:
    """The user's latest drawers, newest first, with score 0.

    Args:
        exclude_ids: Keys of drawers that are already in the prompt.
    """
    said = Drawer.objects.within(palace).kept().with_place().filter(role="user")
    if as_of is not None:
        said = said.filter(said_at__lte=as_of)
    newest = said.exclude(pk__in=exclude_ids).order_by("-said_at", "-pk")[:limit]
    return tuple(
        Hit(drawer, drawer.pointer, score=0.0, signals={}, passage=(0, len(drawer.text)))
        for drawer in newest
    )

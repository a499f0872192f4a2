"""Recall: the one way anything is found, for chat, pages, programs and benchmarks alike."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from language.english.question_subject import is_plain, subject_of
from palace.models import Drawer, Palace
from palace.models.opening import in_its_palace
from palace.recall.deduplication import Composed, ConversationState, Seen, compose, read_seen
from palace.recall.facts import KnownFact, fact_floor, facts_for
from palace.recall.query import Query
from palace.recall.recollection import Hit, Recollection
from palace.recall.request import RecallRequest
from palace.recall.request_context import RequestContext, read_request_context
from palace.recall.retrieval import Found, search
from palace.recall.trace import keep_trace

__all__ = ["Hit", "RecallRequest", "Recollection", "recall"]
OPENED = "Nothing fitted this, so what was said last came along."


@in_its_palace
def recall(palace: Palace, request: RecallRequest) -> Recollection:
    """Find the drawers that answer the question best, and say why.

    Call it outside of a transaction: it may ask models, which takes seconds.

    Raises:
        EmptyQuery: the query is blank.
        BadInput: the conversation's id cannot be one.
        UnknownRecipe: there is none of that name.
    """
    started = time.perf_counter()
    seen = read_seen(palace, request.conversation)
    context = read_request_context(palace, request)
    found = search(palace, request, context)
    known = _known(palace, request, context, found) if request.with_facts else []
    hits = found.hits
    opens = _opens(request.conversation, found.question, found_any=bool(hits or known))
    if opens:
        most = min(context.recipe.opening, context.limit)
        hits = latest(palace, request.as_of, request.exclude_ids, most)
    silent = frozenset(place for place, hit in enumerate(hits) if not hit.tells)
    shares, budget = context.recipe.shares, request.budget_tokens
    block = compose(palace, seen, hits, known, budget, request.session, shares, silent)
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
        unasked=opens and bool(hits),
        notes=tuple(_notes(found, seen, block, hits, opens=opens)),
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    if request.store_trace:
        keep_trace(palace, found.question, context.recipe, found.scored, recollection, known, block)
    return recollection


def _opens(conversation: ConversationState | None, question: Query, *, found_any: bool) -> bool:
    """Whether it opens a conversation with what was said last: "hi", or nothing fits, and no
    subject is named that would be missed.
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
    found: Found, seen: Seen, block: Composed, hits: Sequence[Hit], *, opens: bool
) -> Iterator[str]:
    """What was degraded or left out, in sentences."""
    packed = block.packed
    yield from (note for note in (found.question.note, found.note, seen.note) if note)
    if opens and hits:
        yield OPENED
    if too_long := [place for place in packed.left_out if hits[place].tells]:
        yield f"{len(too_long)} of {len(hits)} did not fit the budget of tokens."
    if packed.facts_left_out:
        facts = len(packed.facts_left_out) + len(packed.facts)
        yield f"{len(packed.facts_left_out)} of {facts} facts did not fit the budget of tokens."


def latest(
    palace: Palace, as_of: datetime | None, exclude_ids: Collection[int], limit: int
) -> tuple[Hit, ...]:
    """What the user said last, the newest first, without a score: no question found it.

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

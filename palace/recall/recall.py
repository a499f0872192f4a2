"""Recall: the one way anything is found, for chat, pages, programs and benchmarks alike."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from palace.models import Palace
from palace.recall.context_format import PackableTurn
from palace.recall.deduplication import Composed, ConversationState, Seen, compose, read_seen
from palace.recall.facts import KnownFact, fact_floor, facts_for
from palace.recall.latest import latest
from palace.recall.query import Query
from palace.recall.question_subject import is_plain, subject_of
from palace.recall.recipes import Recipe, recipe_chosen, recipe_named
from palace.recall.recollection import Hit, Recollection
from palace.recall.request_context import read_request_context
from palace.recall.retrieval import Found, search
from palace.recall.trace import keep_trace

__all__ = ["Hit", "Recollection", "recall"]

OPENED = "Nothing fitted this, so what was said last came along."


def recall(
    palace: Palace,
    query: str,
    *,
    top_k: int | None = None,
    now: datetime | None = None,
    as_of: datetime | None = None,
    recipe: str | None = None,
    budget_tokens: int | None = None,
    exclude_ids: Collection[int] = (),
    rerank: bool | None = None,
    with_facts: bool = False,
    session: Sequence[PackableTurn] = (),
    agent: str = "",
    run: str = "",
    talk: ConversationState | None = None,
    traced: bool = True,
) -> Recollection:
    """Find the drawers that answer `query` best, and say why.

    Call it outside of a transaction: it may ask models, which takes seconds.

    Args:
        top_k: At most this many hits, from 1; the owner's own choice unless given.
        now: The moment "yesterday" and the like refer to; the present, by the
            owner's clock, unless given.
        as_of: Leave out what was said later.
        recipe: How it looks; the owner's own choice unless given.
        budget_tokens: Length of the context block; without one it holds all hits.
        exclude_ids: Keys of drawers that whoever asks has before them anyway.
        rerank: Whether a model puts the best in order; the owner's own choice unless given.
        with_facts: Whether what is known stands before the drawers in the context block, as
            much of it as the recipe says.
        session: The latest turns of the conversation, in order, to end the context block with.
        agent: Facts kept for this agent may come too; likewise `run`.
        talk: The conversation it is for: what its model has before it already is not given anew.
            Once the block was really sent, call `injection.mark()`. An opening message that names
            no subject, such as "hi", is answered with what was said last where nothing fits.
        traced: Whether it goes on record; not where recall itself is tried, and nobody asked.

    Raises:
        EmptyQuery: the query is blank.
        BadInput: the conversation's id cannot be one.
        UnknownRecipe: there is none of that name.
    """
    started = time.perf_counter()
    seen = read_seen(palace, talk)
    opening = read_request_context(palace)
    choices = opening.choices
    chosen = recipe_chosen(choices.recipe) if recipe is None else recipe_named(recipe)
    most = max(choices.top_k if top_k is None else top_k, 1)
    found = search(
        palace,
        opening,
        chosen,
        query,
        most=most,
        now=now or choices.local_now(),
        as_of=as_of,
        exclude_ids=exclude_ids,
        rerank=rerank,
    )
    known = _known(palace, found, chosen, agent, run) if with_facts else []
    hits = found.hits
    unasked = _opens(talk, found.question, found_any=bool(hits or known))
    if unasked:
        hits = latest(palace, as_of, exclude_ids, min(chosen.opening, most))
    silent = frozenset(place for place, hit in enumerate(hits) if not hit.tells)
    told = compose(palace, seen, hits, known, budget_tokens, session, chosen.shares, silent)
    recollection = Recollection(
        uuid=uuid.uuid4(),
        query=found.question.text,
        hits=hits,
        facts=tuple(known[place] for place in told.packed.facts),
        context=told.packed.context,
        context_tokens=told.packed.tokens,
        citations=told.packed.citations,
        carried=told.carried,
        injection=told.injection,
        unasked=unasked and bool(hits),
        notes=tuple(_notes(found, seen, told, hits, unasked=unasked)),
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    if traced:
        keep_trace(palace, found.question, chosen, found.scored, recollection, known, told)
    return recollection


def _opens(talk: ConversationState | None, question: Query, *, found_any: bool) -> bool:
    """Whether it opens a conversation with what was said last: "hi", or nothing fits, and no
    subject is named that would be missed.
    """
    if talk is None or talk.turn != 0:
        return False
    return is_plain(question) or not (found_any or subject_of(question))


def _known(palace: Palace, found: Found, recipe: Recipe, agent: str, run: str) -> list[KnownFact]:
    floor = fact_floor(found.question, is_refused=found.scored.relevance.is_refused)
    return facts_for(
        palace, found.space, found.question, floor=floor, agent=agent, run=run, limit=recipe.facts
    )


def _notes(
    found: Found, seen: Seen, told: Composed, hits: Sequence[Hit], *, unasked: bool
) -> Iterator[str]:
    """What was degraded or left out, in sentences."""
    packed = told.packed
    yield from (note for note in (found.question.note, found.note, seen.note) if note)
    if unasked and hits:
        yield OPENED
    if too_long := [place for place in packed.left_out if hits[place].tells]:
        yield f"{len(too_long)} of {len(hits)} did not fit the budget of tokens."
    if packed.facts_left_out:
        facts = len(packed.facts_left_out) + len(packed.facts)
        yield f"{len(packed.facts_left_out)} of {facts} facts did not fit the budget of tokens."

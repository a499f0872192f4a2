"""Recall: the one way anything is found, for chat, pages, programs and benchmarks alike."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import numpy as np

from palace.indexing.spaces import active_space
from palace.models import EmbeddingSpace, Palace
from palace.recall.candidates import find_candidates
from palace.recall.conversing import Composed, Seen, Talk, compose, read_seen
from palace.recall.facts import KnownFact, facts_for
from palace.recall.keyword import by_words
from palace.recall.latest import latest
from palace.recall.lines import PackableTurn
from palace.recall.loading import load
from palace.recall.opening import Opening, read_opening
from palace.recall.query import Query, read_query
from palace.recall.recipes import Recipe, recipe_chosen, recipe_named
from palace.recall.recollection import Hit, Recollection
from palace.recall.rerank import RERANKED, rerank_hits, reranker
from palace.recall.scoring import Scored, score
from palace.recall.semantic import Meaning, by_meaning
from palace.recall.tracing import keep_trace

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
    leave_out: Collection[int] = (),
    rerank: bool | None = None,
    with_facts: bool = False,
    session: Sequence[PackableTurn] = (),
    agent: str = "",
    run: str = "",
    talk: Talk | None = None,
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
        leave_out: Keys of drawers that whoever asks has before them anyway.
        rerank: Whether a model puts the best in order; the owner's own choice unless given.
        with_facts: Whether what is known stands before the drawers in the context block, as
            much of it as the recipe says.
        session: The latest turns of the conversation, in order, to end the context block with.
        agent: Facts kept for this agent may come too; likewise `run`.
        talk: The conversation it is for: what its model has before it already is not given anew.
            Once the block was really sent, call `injection.mark()`. Its opening message is
            answered with what was said last where nothing fits.
        traced: Whether it goes on record; not where recall itself is tried, and nobody asked.

    Raises:
        EmptyQuery: the query is blank.
        BadInput: the conversation's id cannot be one.
        UnknownRecipe: there is none of that name.
    """
    started = time.perf_counter()
    seen = read_seen(palace, talk)
    opening = read_opening(palace)
    choices = opening.choices
    chosen = recipe_chosen(choices.recipe) if recipe is None else recipe_named(recipe)
    most = max(choices.top_k if top_k is None else top_k, 1)
    now = now or choices.local_now()
    space, question, meaning = _understand(palace, opening, chosen, query, now, as_of)
    words = by_words(palace, question.terms, opening.census)
    candidates = find_candidates(palace, question, meaning, words, best_each=chosen.best_each)
    meaning = meaning.with_all(candidates.with_neighbours())
    scored = score(question, chosen, candidates, meaning, words, leave_out)
    model = reranker(choices, wanted=(chosen.rerank or None) if rerank is None else rerank)
    looked_at = max(most, RERANKED) if model.is_there else most
    hits, order_note = rerank_hits(
        question, _hits(palace, space, scored, meaning, scored.order[:looked_at]), model
    )
    hits = hits[:most]
    known = _known(palace, space, question, chosen, agent, run) if with_facts else []
    unasked = talk is not None and talk.turn == 0 and not (hits or known)
    if unasked:
        hits = latest(palace, question.as_of, leave_out, min(chosen.opening, most))
    told = compose(palace, seen, hits, known, budget_tokens, session, chosen.shares)
    recollection = Recollection(
        uuid=uuid.uuid4(),
        query=question.text,
        hits=hits,
        facts=tuple(known[place] for place in told.packed.facts),
        context=told.packed.context,
        context_tokens=told.packed.tokens,
        citations=told.packed.citations,
        carried=told.carried,
        injection=told.injection,
        unasked=unasked and bool(hits),
        notes=tuple(_notes(question.note, order_note, seen, told, len(hits), unasked=unasked)),
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    if traced:
        keep_trace(palace, question, chosen, scored, recollection, known, told)
    return recollection


def _known(
    palace: Palace, space: EmbeddingSpace, question: Query, recipe: Recipe, agent: str, run: str
) -> list[KnownFact]:
    return facts_for(palace, space, question, agent=agent, run=run, limit=recipe.facts)


def _notes(
    question_note: str, order_note: str, seen: Seen, told: Composed, hits: int, *, unasked: bool
) -> Iterator[str]:
    """What was degraded or left out, in sentences."""
    packed = told.packed
    yield from (note for note in (question_note, order_note, seen.note) if note)
    if unasked and hits:
        yield OPENED
    if packed.left_out:
        yield f"{len(packed.left_out)} of {hits} did not fit the budget of tokens."
    if packed.facts_left_out:
        facts = len(packed.facts_left_out) + len(packed.facts)
        yield f"{len(packed.facts_left_out)} of {facts} facts did not fit the budget of tokens."


def _understand(
    palace: Palace,
    opening: Opening,
    recipe: Recipe,
    text: str,
    now: datetime,
    as_of: datetime | None,
) -> tuple[EmbeddingSpace, Query, Meaning]:
    """Read the question and compare it by meaning, both in the same space.

    While models are switched, the passages of the space just looked up may be gone already.
    """
    space = opening.space
    while True:
        question = read_query(
            palace, space, text, now=now, as_of=as_of, by_meaning=recipe.by_meaning
        )
        meaning = by_meaning(palace, space, question.aim, opening.census, as_asked=question.vector)
        if len(meaning.drawers) or question.vector is None or active_space() == space:
            return space, question, meaning
        space = active_space()


def _hits(
    palace: Palace, space: EmbeddingSpace, scored: Scored, meaning: Meaning, places: list[int]
) -> tuple[Hit, ...]:
    keys = scored.candidates.drawers[places]
    ordinals = meaning.at(keys, meaning.best_passage).astype(np.int64)
    found = load(palace, space, keys, ordinals)
    hits = []
    for place, key in zip(places, keys.tolist(), strict=True):
        if key not in found:  # Trashed or purged since it was scored.
            continue
        drawer, span = found[key].drawer, found[key].span
        hits.append(
            Hit(
                drawer=drawer,
                pointer=drawer.pointer,
                score=float(scored.scores[place]),
                signals=scored.signals(place),
                passage=span or (0, len(drawer.text)),
            )
        )
    return tuple(hits)

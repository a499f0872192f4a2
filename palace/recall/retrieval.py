"""Retrieval: the single retrieval path of chat, pages, APIs and benchmarks.

`recall` answers a request with a context block and stores its trace; `search` finds the hits.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from prometheus_client import Histogram

from language.english.dates import TimeIntent
from language.storable import normalize_query
from llm.models import hold_free_calls
from palace.models import EmbeddingSpace, Palace, opens_palace
from palace.recall.candidates import Candidates, allowed_drawers, find_candidates
from palace.recall.deduplication import (
    Composed,
    LedgerSnapshot,
    compose,
    read_ledger,
)
from palace.recall.drawer_loader import NOTHING_FOUND, is_opening, latest_hits, load_drawers
from palace.recall.entity_graph import near_entities
from palace.recall.facts import RecalledFact, fact_floor, facts_for
from palace.recall.index.index_loader import give_memory_back
from palace.recall.keyword import by_words
from palace.recall.model_stages import Reranker, fused, rerank_hits, reranker, rewrite
from palace.recall.outdated import Scope, find_outdated
from palace.recall.query import Query, read_query
from palace.recall.raw_sql import NO_KEYS, Keys
from palace.recall.recipes import Recipe
from palace.recall.request import (
    Hit,
    RecallRequest,
    Recollection,
    RequestContext,
    read_request_context,
    scope_of,
)
from palace.recall.scoring import Scored, features, score
from palace.recall.semantic import MOST_PASSAGES, Meaning, Scores, by_meaning
from palace.recall.trace import keep_trace
from palace.storage.indexing.spaces import active_space

TOO_LONG = "The {} best of {} hits are here: their texts are as long as a recall may be (8 MB)."
# The graph starts from what so many of the best hits mention, if it starts from hits.
STARTS = 10
_SECONDS = Histogram("loci_recall_seconds", "Durations of recalls.")


@_SECONDS.time()
@opens_palace
@hold_free_calls()
def recall(palace: Palace, request: RecallRequest) -> Recollection:
    """Find the drawers that answer the question best, with the contribution of each signal.

    Call it outside of a transaction: it may call models, which takes seconds.

    Raises:
        EmptyQuery: the query is blank.
        BadInput: the conversation's id is invalid.
        UnknownRecipe: no recipe has that name; BadRecipe: its stages are invalid.
    """
    recollection, passages = _recall(palace, request)
    if passages > MOST_PASSAGES:  # Everything was read for this one question.
        give_memory_back()
    return recollection


def _recall(palace: Palace, request: RecallRequest) -> tuple[Recollection, int]:
    """The recollection, and about how many passages were searched."""
    started = time.perf_counter()
    ledger = read_ledger(palace, request.conversation)
    context = read_request_context(palace, request)
    if context.recipe.rewrite:
        found = search_rewritten(palace, request, context)
    else:
        found = search(palace, request, context)
    question, scored = found.question, found.scored
    degraded: list[str] = []
    known = _known(palace, request, context, found, degraded) if request.with_facts else []
    hits = found.hits
    opens = is_opening(request.conversation, question, found_any=bool(hits or known))
    if opens:
        most = min(context.recipe.opening, context.limit)
        hits = latest_hits(palace, request, context, most)
    hits, successors = _mark_outdated(palace, request, context, hits)
    known = _with_successors(known, successors, context.recipe.facts if request.with_facts else 0)
    uninformative = frozenset(place for place, hit in enumerate(hits) if not hit.is_informative)
    shares, budget = context.recipe.shares, request.budget_tokens
    block = compose(palace, ledger, hits, known, budget, request.session, shares, uninformative)
    notes = (*degraded, *_notes(found, ledger, block, hits, is_opening=opens))
    recollection = _recollection(
        question, hits, known, block, notes, started, is_opening=opens and bool(hits)
    )
    if request.store_trace:
        keep_trace(palace, request, context, question, scored, recollection, known, block)
    return recollection, context.corpus_stats.passages


def _recollection(
    question: Query,
    hits: tuple[Hit, ...],
    known: Sequence[RecalledFact],
    block: Composed,
    notes: tuple[str, ...],
    started: float,
    *,
    is_opening: bool,
) -> Recollection:
    """The hits, and what of them and of the known facts is in the block."""
    return Recollection(
        uuid=uuid.uuid4(),
        query=question.text,
        hits=hits,
        facts=tuple(known[place] for place in block.packed.facts),
        context=block.packed.context,
        citations=block.packed.citations,
        carried=block.carried,
        injection=block.injection,
        notes=notes,
        duration_ms=(time.perf_counter() - started) * 1000,
        is_opening=is_opening,
        question=question,
    )


def _known(
    palace: Palace,
    request: RecallRequest,
    context: RequestContext,
    found: Found,
    notes: list[str],
) -> list[RecalledFact]:
    recipe, question = context.recipe, found.question
    floor = fact_floor(question, is_refused=found.scored.relevance.is_refused)
    near: Mapping[int, float] = {}
    if recipe.by_graph:
        best = found.hits[:STARTS] if recipe.from_hits else ()
        starts = [hit.drawer.pk for hit in best]
        near = near_entities(
            palace, question.text, as_of=question.as_of, hops=recipe.hops, mentioned_in=starts
        )
    return facts_for(
        palace,
        found.space,
        question,
        near=near,
        floor=floor,
        agent=request.agent,
        run=request.run,
        limit=recipe.facts,
        notes=notes,
    )


def _mark_outdated(
    palace: Palace, request: RecallRequest, context: RequestContext, hits: Sequence[Hit]
) -> tuple[tuple[Hit, ...], list[RecalledFact]]:
    """The hits with what of them no longer holds, and the facts that hold instead."""
    ended = {hit.drawer.pk: hit.ended for hit in hits if hit.ended}
    outdated, successors = find_outdated(palace, ended, scope_of(request, context))
    marked = (replace(hit, outdated=outdated.get(hit.drawer.pk)) for hit in hits)
    return tuple(marked) if outdated else tuple(hits), successors


def _with_successors(
    known: list[RecalledFact], successors: list[RecalledFact], limit: int
) -> list[RecalledFact]:
    """The facts, with those that outdate a hit first, so that they stay within the budget.

    A known one that does has its place, and shows since when it holds.
    """
    dates = {one.fact.pk: one.dates for one in successors}
    present = {one.fact.pk for one in known}
    new = [one for one in successors if one.fact.pk not in present]
    dated = (replace(one, dates=one.dates or dates.get(one.fact.pk, "")) for one in known)
    return [*new, *dated][:limit]


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


@dataclass(frozen=True, slots=True)
class Found:
    """
    Attributes:
        space: The embedding space searched.
        question: The parsed query.
        scored: All candidates.
        hits: The best candidates, in order.
        note: Why a requested reranking failed, or hits were left out; empty otherwise.
    """

    space: EmbeddingSpace
    question: Query
    scored: Scored
    hits: tuple[Hit, ...]
    note: str


def search(palace: Palace, request: RecallRequest, context: RequestContext) -> Found:
    """Find at most `context.limit` hits.

    Raises:
        EmptyQuery: the query is blank.
    """
    recipe, corpus_stats = context.recipe, context.corpus_stats
    model = _reranker(request, context)
    space, question, meaning = _read_question(palace, request, context)
    words = by_words(
        palace,
        question.terms,
        corpus_stats,
        meaning.uninformative,
        readings=question.readings,
        postings=context.postings,
    )
    allowed = allowed_drawers(palace, request)
    to_find = words if recipe.by_keywords else words.limited_to(NO_KEYS)
    candidates = find_candidates(
        palace, question, meaning, to_find, best_each=recipe.best_each, allowed=allowed
    )
    if meaning.vector_query:
        meaning = meaning.with_all(candidates.with_neighbours())
    fitted = recipe.fitted_to(question.embedder)
    scored = score(question, fitted, candidates, meaning, words, allowed)
    pool_size = max(context.limit, model.compared) if model.is_available else context.limit
    places = scored.order[:pool_size]
    best, too_many = _hits(palace, space, scored, meaning, places, scope_of(request, context))
    hits, note = rerank_hits(question, best, model)
    notes = [note, TOO_LONG.format(len(best), len(places))] if too_many else [note]
    return Found(space, question, scored, hits[: context.limit], " ".join(filter(None, notes)))


def _reranker(request: RecallRequest, context: RequestContext) -> Reranker:
    wanted = context.recipe.rerank if request.rerank is None else request.rerank
    model = reranker(context.settings, wanted=wanted)
    return replace(model, compared=context.recipe.reranked, promoted=context.recipe.promoted)


def search_rewritten(palace: Palace, request: RecallRequest, context: RequestContext) -> Found:
    """As `search`, and for what a model makes of the question too; the ranks are fused."""
    others, note = rewrite(context, normalize_query(request.query))
    own, together = search_together(palace, request, context, others)
    hits, reranked = rerank_hits(own.question, together, _reranker(request, context))
    note = " ".join(dict.fromkeys(filter(None, (note, own.note, reranked))))
    return replace(own, hits=hits[: context.limit], note=note)


def search_together(
    palace: Palace, request: RecallRequest, context: RequestContext, others: Sequence[str]
) -> tuple[Found, tuple[Hit, ...]]:
    """Search further questions too: what was found for the question itself, and all hits fused.

    What was found for the question itself stands for all: the trace explains its scores.
    """
    size = max(context.limit, context.recipe.reranked)
    parts: list[Found] = []
    for query in (request.query, *others):
        part = replace(request, query=query, rerank=False, beside="" if parts else request.beside)
        read = read_request_context(palace, part) if parts else context
        parts.append(search(palace, part, replace(read, limit=size)))
    own = parts[0]
    note = " ".join(dict.fromkeys(filter(None, (part.note for part in parts))))
    question = replace(own.question, rewritten=tuple(others))
    return replace(own, question=question, note=note), fused([part.hits for part in parts])


def _read_question(
    palace: Palace, request: RecallRequest, context: RequestContext
) -> tuple[EmbeddingSpace, Query, Meaning]:
    """Parse the question and compare it by meaning, both in the same space.

    During a switch of models, the passages of the space just read may already be deleted; then
    retry with the new active space.
    """
    space = context.space
    while True:
        question = read_query(
            palace,
            space,
            request.query,
            now=context.now,
            as_of=request.as_of,
            by_meaning=context.recipe.by_meaning,
            readings=context.readings,
            beside=request.beside,
        )
        meaning = by_meaning(
            palace, space, question.adapted, context.corpus_stats, unadapted=question.vector
        )
        if len(meaning.drawers) or question.vector is None or active_space() == space:
            return space, _without_stages(question, context.recipe), meaning
        space = active_space()


def _without_stages(question: Query, recipe: Recipe) -> Query:
    """The question without what the recipe does not read."""
    if not recipe.by_time:
        question = replace(question, time=TimeIntent())
    if not recipe.by_preference:
        question = replace(question, intent=replace(question.intent, asks_advice=False))
    return question


def candidate_features(
    palace: Palace, space: EmbeddingSpace, question: Query
) -> tuple[Candidates, dict[str, Scores]]:
    """The candidates of a parsed question and their features, to which training fits weights."""
    meaning = by_meaning(palace, space, question.adapted)
    words = by_words(
        palace,
        question.terms,
        uninformative=meaning.uninformative,
        readings=question.readings,
    )
    candidates = find_candidates(palace, question, meaning, words)
    meaning = meaning.with_all(candidates.with_neighbours())
    return candidates, features(question, candidates, meaning, words)


def _hits(
    palace: Palace,
    space: EmbeddingSpace,
    scored: Scored,
    meaning: Meaning,
    places: Keys,
    scope: Scope,
) -> tuple[tuple[Hit, ...], int]:
    """The candidates at these places as hits, and how many were too many to load."""
    if not len(places):
        return (), 0
    keys = scored.candidates.drawers[places]
    ordinals = meaning.at(keys, meaning.best_passage).astype(np.int64)
    found, too_many = load_drawers(palace, space, keys, ordinals, scope)
    signals = scored.signals(places)
    hits = []
    for at, (place, key) in enumerate(zip(places.tolist(), keys.tolist(), strict=True)):
        if key not in found:  # Trashed or purged since it was scored.
            continue
        loaded = found[key]
        hits.append(
            Hit(
                drawer=loaded.drawer,
                pointer=loaded.pointer,
                score=float(scored.scores[place]),
                signals=signals[at],
                passage=loaded.span or (0, len(loaded.drawer.text)),
                is_informative=bool(scored.informative[place]),
                ended=loaded.ended,
            )
        )
    return tuple(hits), too_many

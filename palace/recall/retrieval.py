"""Retrieval: from a question to the hits that answer it best, whatever becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from palace.models import EmbeddingSpace, Palace
from palace.recall.candidates import find_candidates
from palace.recall.hit_loader import load
from palace.recall.keyword import by_words
from palace.recall.query import Query, read_query
from palace.recall.recollection import Hit
from palace.recall.request import RecallRequest
from palace.recall.request_context import RequestContext
from palace.recall.rerank import RERANKED, rerank_hits, reranker
from palace.recall.scoring import Scored, score
from palace.recall.semantic import Meaning, by_meaning
from palace.storage.indexing.spaces import active_space


@dataclass(frozen=True, slots=True)
class Found:
    """
    Attributes:
        space: The one that was searched.
        question: As it was read.
        scored: All that was looked at.
        hits: The best, in order.
        note: Why a model did not put them in order; empty where it did, or none was to.
    """

    space: EmbeddingSpace
    question: Query
    scored: Scored
    hits: tuple[Hit, ...]
    note: str


def search(palace: Palace, request: RecallRequest, context: RequestContext) -> Found:
    """At most `context.limit` hits.

    Raises:
        EmptyQuery: the query is blank.
    """
    recipe, corpus_stats = context.recipe, context.corpus_stats
    space, question, meaning = _understand(palace, request, context)
    words = by_words(palace, question.terms, corpus_stats, meaning.silent)
    candidates = find_candidates(palace, question, meaning, words, best_each=recipe.best_each)
    meaning = meaning.with_all(candidates.with_neighbours())
    scored = score(question, recipe, candidates, meaning, words, request.exclude_ids)
    wanted = (recipe.rerank or None) if request.rerank is None else request.rerank
    model = reranker(context.settings, wanted=wanted)
    looked_at = max(context.limit, RERANKED) if model.is_there else context.limit
    best = _hits(palace, space, scored, meaning, scored.order[:looked_at])
    hits, note = rerank_hits(question, best, model)
    return Found(space, question, scored, hits[: context.limit], note)


def _understand(
    palace: Palace, request: RecallRequest, context: RequestContext
) -> tuple[EmbeddingSpace, Query, Meaning]:
    """Read the question and compare it by meaning, both in the same space.

    While models are switched, the passages of the space just looked up may be gone already.
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
        )
        meaning = by_meaning(
            palace, space, question.aim, context.corpus_stats, as_asked=question.vector
        )
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
                tells=bool(scored.telling[place]),
            )
        )
    return tuple(hits)

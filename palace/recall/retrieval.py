"""Retrieval: finds, scores and reranks the hits of a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from django.db import connection, models

from palace.models import Closet, Drawer, EmbeddingSpace, Palace, Room, Wing
from palace.recall.candidates import find_candidates
from palace.recall.keyword import by_words
from palace.recall.query import Query, read_query
from palace.recall.raw_sql import array_literal, columns, read_instance
from palace.recall.recollection import Hit
from palace.recall.request import RecallRequest
from palace.recall.request_context import RequestContext
from palace.recall.rerank import RERANKED, rerank_hits, reranker
from palace.recall.scoring import Scored, score
from palace.recall.semantic import Ids, Meaning, by_meaning
from palace.storage.indexing.spaces import active_space

_TABLES: tuple[tuple[str, type[models.Model]], ...] = (
    ("d", Drawer),
    ("r", Room),
    ("w", Wing),
    ("c", Closet),
)


@dataclass(frozen=True, slots=True)
class Found:
    """
    Attributes:
        space: The embedding space searched.
        question: The parsed query.
        scored: All candidates.
        hits: The best candidates, in order.
        note: Why a requested reranking failed; empty otherwise.
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
    space, question, meaning = _read_question(palace, request, context)
    words = by_words(palace, question.terms, corpus_stats, meaning.uninformative)
    candidates = find_candidates(palace, question, meaning, words, best_each=recipe.best_each)
    meaning = meaning.with_all(candidates.with_neighbours())
    scored = score(question, recipe, candidates, meaning, words, request.exclude_ids)
    wanted = (recipe.rerank or None) if request.rerank is None else request.rerank
    model = reranker(context.settings, wanted=wanted)
    pool_size = max(context.limit, RERANKED) if model.is_available else context.limit
    best = _hits(palace, space, scored, meaning, scored.order[:pool_size])
    hits, note = rerank_hits(question, best, model)
    return Found(space, question, scored, hits[: context.limit], note)


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
        )
        meaning = by_meaning(
            palace, space, question.adapted, context.corpus_stats, unadapted=question.vector
        )
        if len(meaning.drawers) or question.vector is None or active_space() == space:
            return space, question, meaning
        space = active_space()


def _hits(
    palace: Palace, space: EmbeddingSpace, scored: Scored, meaning: Meaning, places: list[int]
) -> tuple[Hit, ...]:
    keys = scored.candidates.drawers[places]
    ordinals = meaning.at(keys, meaning.best_passage).astype(np.int64)
    found = load_drawers(palace, space, keys, ordinals)
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
                is_informative=bool(scored.informative[place]),
            )
        )
    return tuple(hits)


@dataclass(frozen=True, slots=True)
class LoadedDrawer:
    """A drawer with its room, wing and closet loaded; `span` is None if its passage is gone."""

    drawer: Drawer
    span: tuple[int, int] | None


def load_drawers(
    palace: Palace, space: EmbeddingSpace, drawers: Ids, ordinals: Ids
) -> dict[int, LoadedDrawer]:
    """Load drawers by key; purged and trashed ones are missing.

    Args:
        ordinals: The ordinal of each drawer's best passage.
    """
    parameters: dict[str, str | int] = {
        "palace": palace.pk,
        "space": space.pk,
        "drawers": array_literal(drawers),
        "ordinals": array_literal(ordinals),
    }
    with connection.cursor() as cursor:
        cursor.execute(_statement(), parameters)
        return {loaded.drawer.pk: loaded for loaded in map(_read, cursor)}


@cache
def _statement() -> str:
    """Lateral lookups, because planning the same query with joins takes twice as long."""
    own = ", ".join(columns(model, table) for table, model in _TABLES)
    return f"""
        SELECT p.start, p."end", {own}
        FROM (SELECT * FROM palace_drawer WHERE palace_id = %(palace)s
            AND id = ANY(%(drawers)s::bigint[]) AND trashed_at IS NULL OFFSET 0) d
        CROSS JOIN LATERAL (SELECT * FROM palace_room WHERE id = d.room_id OFFSET 0) r
        CROSS JOIN LATERAL (SELECT * FROM palace_wing WHERE id = r.wing_id OFFSET 0) w
        LEFT JOIN LATERAL
            (SELECT * FROM palace_closet WHERE id = d.closet_id OFFSET 0) c ON true
        LEFT JOIN LATERAL (SELECT * FROM palace_passage WHERE palace_id = %(palace)s
            AND space_id = %(space)s AND drawer_id = d.id AND ordinal =
                (%(ordinals)s::int[])[array_position(%(drawers)s::bigint[], d.id)]
            OFFSET 0) p ON true
    """  # noqa: S608 - put together from the models.


def _read(row: Sequence[Any]) -> LoadedDrawer:
    values = iter(row)
    start, end = islice(values, 2)
    drawer, room = read_instance(Drawer, values), read_instance(Room, values)
    wing, closet = read_instance(Wing, values), read_instance(Closet, values)
    if drawer is None or room is None or wing is None:
        raise ValueError("The row of a drawer has no room or no wing.")
    room.wing, drawer.room, drawer.closet = wing, room, closet
    return LoadedDrawer(drawer, None if start is None else (start, end))

"""Request context: settings, embedding space and corpus statistics, in one query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache

from palace.models import EmbeddingSpace, Palace
from palace.recall.index.corpus_stats import (
    CORPUS_STATS,
    CorpusStats,
    corpus_stats_parameters,
    read_corpus_stats,
)
from palace.recall.raw_sql import columns, fetch_rows, read_instance
from palace.recall.recipes import Recipe, recipe_chosen, recipe_named
from palace.recall.request import RecallRequest
from palace.storage.indexing.spaces import active_space
from settings_app.models import MemorySettings


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Settings of one recall: the request's options, with the owner's as defaults.

    Attributes:
        settings: The owner's, or the defaults.
        space: The embedding space to search.
        limit: Maximum number of hits, from 1.
        now: Aware; the moment that "yesterday" refers to.
    """

    settings: MemorySettings
    space: EmbeddingSpace
    corpus_stats: CorpusStats
    recipe: Recipe
    limit: int
    now: datetime


def read_request_context(palace: Palace, request: RecallRequest) -> RequestContext:
    """
    Raises:
        UnknownRecipe: no recipe has the requested name.
    """
    [row] = fetch_rows(_statement(), [*corpus_stats_parameters(palace), palace.owner_id])
    values = iter(row)
    corpus_stats = read_corpus_stats(values)
    space, stored = read_instance(EmbeddingSpace, values), read_instance(MemorySettings, values)
    settings = stored or MemorySettings(owner_id=palace.owner_id)
    named = request.recipe
    return RequestContext(
        settings=settings,
        space=space or active_space(),
        corpus_stats=corpus_stats,
        recipe=recipe_chosen(settings.recipe) if named is None else recipe_named(named),
        limit=max(settings.top_k if request.top_k is None else request.top_k, 1),
        now=request.now or settings.local_now(),
    )


@cache
def _statement() -> str:
    return (
        f"SELECT stats.*, {columns(EmbeddingSpace, 's')}, {columns(MemorySettings, 'c')}"  # noqa: S608
        f" FROM ({CORPUS_STATS}) stats LEFT JOIN palace_embeddingspace s ON s.active"
        " LEFT JOIN settings_app_memorysettings c ON c.owner_id = %s"
    )

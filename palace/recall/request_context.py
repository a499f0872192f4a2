"""Opening: what every recall has to know before it looks at the question, read in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from palace.models import EmbeddingSpace, Palace
from palace.recall.index.corpus_stats import (
    CORPUS_STATS,
    CorpusStats,
    corpus_stats_parameters,
    read_corpus_stats,
)
from palace.recall.instances import columns, read
from palace.recall.raw_sql import fetch_rows
from palace.storage.indexing.spaces import active_space
from settings_app.models import MemorySettings


@dataclass(frozen=True, slots=True)
class RequestContext:
    """
    Attributes:
        choices: The owner's, or the defaults.
        space: The one that is searched.
    """

    choices: MemorySettings
    space: EmbeddingSpace
    corpus_stats: CorpusStats


def read_request_context(palace: Palace) -> RequestContext:
    [row] = fetch_rows(_statement(), [*corpus_stats_parameters(palace), palace.owner_id])
    values = iter(row)
    corpus_stats = read_corpus_stats(values)
    space, choices = read(EmbeddingSpace, values), read(MemorySettings, values)
    return RequestContext(
        choices or MemorySettings(owner_id=palace.owner_id), space or active_space(), corpus_stats
    )


@cache
def _statement() -> str:
    return (
        f"SELECT stats.*, {columns(EmbeddingSpace, 's')}, {columns(MemorySettings, 'c')}"  # noqa: S608
        f" FROM ({CORPUS_STATS}) stats LEFT JOIN palace_embeddingspace s ON s.active"
        " LEFT JOIN settings_app_memorysettings c ON c.owner_id = %s"
    )

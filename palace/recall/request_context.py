"""Opening: what every recall has to know before it looks at the question, read in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from palace.models import EmbeddingSpace, Palace
from palace.recall.index.corpus_stats import CENSUS, Census, census_parameters, read_census
from palace.recall.instances import columns, read
from palace.recall.raw_sql import fetch_rows
from palace.storage.indexing.spaces import active_space
from settings_app.models import MemorySettings


@dataclass(frozen=True, slots=True)
class Opening:
    """
    Attributes:
        choices: The owner's, or the defaults.
        space: The one that is searched.
    """

    choices: MemorySettings
    space: EmbeddingSpace
    census: Census


def read_opening(palace: Palace) -> Opening:
    [row] = fetch_rows(_statement(), [*census_parameters(palace), palace.owner_id])
    values = iter(row)
    census = read_census(values)
    space, choices = read(EmbeddingSpace, values), read(MemorySettings, values)
    return Opening(
        choices or MemorySettings(owner_id=palace.owner_id), space or active_space(), census
    )


@cache
def _statement() -> str:
    return (
        f"SELECT census.*, {columns(EmbeddingSpace, 's')}, {columns(MemorySettings, 'c')}"  # noqa: S608
        f" FROM ({CENSUS}) census LEFT JOIN palace_embeddingspace s ON s.active"
        " LEFT JOIN settings_app_memorysettings c ON c.owner_id = %s"
    )

"""How far the restore of a palace is. It is in the cache, not in the job's row, because the
transaction that writes the records shows nothing of them before its end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import astuple, dataclass
from enum import StrEnum

import redis
from django.core.cache import cache

from palace.models import ImportJob

logger = logging.getLogger(__name__)

KEPT_S = 3600


class Phase(StrEnum):
    WRITING = "Writing records"
    INDEXING = "Indexing messages"
    EMBEDDING = "Embedding facts and episodes"


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """
    Attributes:
        file: The file of the export whose records are being written, such as "facts".
        done: Rows of this phase, of `total`.
    """

    phase: Phase
    done: int
    total: int
    file: str = ""

    @property
    def title(self) -> str:
        return f"{self.phase}: {self.file.replace('_', ' ')}" if self.file else self.phase.value


# Receives each progress of a restore.
OnProgress = Callable[[RestoreProgress], None]


def report(job: ImportJob, progress: RestoreProgress) -> None:
    """Show the progress on the job's page, until it is an hour old."""
    try:
        cache.set(_key(job), astuple(progress), timeout=KEPT_S)
    except redis.RedisError as error:
        logger.info("The progress of a restore is not shown: %s", error)


def read(job: ImportJob) -> RestoreProgress | None:
    """None if it is unknown."""
    try:
        found = cache.get(_key(job))
    except redis.RedisError as error:
        logger.info("The progress of a restore is unknown: %s", error)
        return None
    if found is None:
        return None
    phase, done, total, file = found
    return RestoreProgress(Phase(phase), done, total, file)


def _key(job: ImportJob) -> str:
    return f"restore-progress-{job.uuid}"

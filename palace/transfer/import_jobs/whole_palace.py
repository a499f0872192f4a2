"""Restore a Loci export into an empty palace, in one transaction, and show how far that is.

The progress is in the cache, not in the job's row, because the transaction that writes the records
shows nothing of them before its end.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import redis
from django.core.cache import cache
from django.db import DatabaseError, transaction

from language.errors import BadImport
from palace.mining.pipeline import index_rooms, placed
from palace.models import (
    Entity,
    Episode,
    EpisodeVector,
    Fact,
    ImportJob,
    Palace,
    Room,
    Wing,
    WingAlias,
)
from palace.storage import check_quota, count_fact_vectors, fill_fact_vectors
from palace.storage.indexing import episode_vectors
from palace.storage.indexing.spaces import active_space
from palace.transfer import restore_rows
from palace.transfer.import_jobs.job_state import move_on
from palace.transfer.importers import loci
from palace.transfer.importers.conversation import as_time
from palace.transfer.importers.loci import Record, record_from_line
from palace.transfer.record_fields import Fields, RestoredKeys
from palace.transfer.spools import spool_path

# Restored records other than messages, by file.
_WITH_THEM = {
    "wings": ("wing", "wings"),
    "rooms": ("room", "rooms"),
    "closets": ("topic", "topics"),
    "entities": ("person or thing", "people and things"),
    "facts": ("version of a fact", "versions of facts"),
    "episodes": ("episode", "episodes"),
}
# Rooms that are indexed together, each under a lock.
ROOMS = 64
logger = logging.getLogger(__name__)

KEPT_S = 3600


class WholeSurvey:
    """Collects a preview's figures, record by record."""

    def __init__(self) -> None:
        self.records: Counter[str] = Counter()
        self.first: datetime | None = None
        self.last: datetime | None = None
        self._conversations: set[tuple[str, str]] = set()

    def read(self, listed: Path) -> None:
        """Count the listed items, which have no texts."""
        with listed.open("rb") as lines:
            for record in map(record_from_line, lines):
                self.records[record.file] += 1
                if record.file == "drawers":
                    self._add_drawer(record.fields())

    @property
    def conversations(self) -> int:
        return len(self._conversations)

    @property
    def messages(self) -> int:
        return self.records["drawers"]

    def figures(self, format_name: str) -> dict[str, Any]:
        return {
            "format": format_name,
            "conversations": self.conversations,
            "empty_conversations": 0,
            "branches": 0,
            "messages": self.messages,
            "new": self.messages,
            "present": 0,
            "skipped": {},
            "left_out": {},
            "first": self.first.isoformat() if self.first else None,
            "last": self.last.isoformat() if self.last else None,
            "whole": {file: count for file, count in self.records.items() if file != "palace"},
        }

    def _add_drawer(self, fields: dict[str, Any]) -> None:
        self._conversations.add((str(fields.get("source")), str(fields.get("conversation"))))
        if said_at := as_time(fields.get("said_at")):
            self.first = min(said_at, self.first or said_at)
            self.last = max(said_at, self.last or said_at)


def is_loci_export(job: ImportJob) -> bool:
    return job.format == loci.SOURCE


def is_whole(job: ImportJob) -> bool:
    """Whether the job restores a palace with all its records."""
    return "whole" in job.preview


def whole_in_words(job: ImportJob) -> list[str]:
    """Restored records other than messages: "4 wings", "1 episode" and so on."""
    counts = job.preview.get("whole", {})
    return [
        f"{counts[file]:,} {one if counts[file] == 1 else many}"
        for file, (one, many) in _WITH_THEM.items()
        if counts.get(file)
    ]


def holds_nothing(job: ImportJob) -> bool:
    """Whether there is nothing to import; to restore, facts and episodes count as well."""
    return not job.preview.get("messages") and not whole_in_words(job)


def put_back(job: ImportJob, show: OnProgress) -> None:
    """Write everything, and record that it was, both or neither.

    Args:
        show: Receives the progress.

    Raises:
        BadImport: the palace is no longer empty, or a record is invalid.
        QuotaExceeded: it is larger than a palace may be.
        Overtaken: the job was paused or discarded meanwhile.
    """
    with transaction.atomic():
        restore(job.palace, lambda: _records(job), _counting(job, show))
        check_quota(job.palace, ())
        move_on(
            job,
            spool_offset=spool_path(job).stat().st_size,
            conversations_done=job.conversations_total,
            messages_stored=job.messages_total,
        )


def _counting(job: ImportJob, show: OnProgress) -> Callable[[str, int], None]:
    """For `restore`: shows how many records are written, in all."""
    whole: Mapping[str, int] = job.preview["whole"]
    done, total = 0, sum(whole.values())

    def count(file: str, number: int) -> None:
        nonlocal done
        if file in whole:  # The palace's own record is not counted.
            done += number
            show(RestoreProgress(Phase.WRITING, done, total, file))

    return count


def make_findable(job: ImportJob, is_over: Callable[[], bool], show: OnProgress) -> bool:
    """Index restored drawers and embed facts; False when the slice is over.

    If the embedder fails, the periodic task does the rest.

    Args:
        show: Receives the progress.
    """
    palace, messages = job.palace, job.messages_total
    rooms = Room.objects.within(palace).select_related("palace", "wing")
    keys = list(placed(palace).order_by("room").values_list("room", flat=True).distinct())
    for first in range(0, len(keys), ROOMS):
        show(RestoreProgress(Phase.INDEXING, messages - placed(palace).count(), messages))
        index_rooms(list(rooms.filter(pk__in=keys[first : first + ROOMS])))
        if is_over():
            return False
    return _embed(job, is_over, show)


def _embed(job: ImportJob, is_over: Callable[[], bool], show: OnProgress) -> bool:
    space, whole = active_space(), job.preview["whole"]
    total = whole.get("facts", 0) + whole.get("episodes", 0)
    of_episodes = EpisodeVector.objects.filter(palace=job.palace_id, space=space)
    while True:
        done = count_fact_vectors(job.palace, space) + of_episodes.count()
        show(RestoreProgress(Phase.EMBEDDING, done, total))
        if not (fill_fact_vectors(space) or episode_vectors.fill_batch(space)):
            return True
        if is_over():
            return False


def _records(job: ImportJob) -> Iterator[Record]:
    try:
        with spool_path(job).open("rb") as lines:
            yield from map(record_from_line, lines)
    except (OSError, ValueError) as error:
        raise BadImport(
            "The prepared copy of the file is damaged or gone; import it again."
        ) from error


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


def report_restore_progress(job: ImportJob, progress: RestoreProgress) -> None:
    """Show the progress on the job's page, until it is an hour old."""
    try:
        cache.set(_key(job), astuple(progress), timeout=KEPT_S)
    except redis.RedisError as error:
        logger.info("The progress of a restore is not shown: %s", error)


def read_restore_progress(job: ImportJob) -> RestoreProgress | None:
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


# Records in memory at once; messages can be long.
CHUNK = 200

Writer = Callable[[RestoredKeys, Sequence[Fields]], None]

WRITERS: dict[str, Writer] = {
    "palace": restore_rows.put_palace,
    "wings": restore_rows.put_wings,
    "entities": restore_rows.put_entities,
    "rooms": restore_rows.put_rooms,
    "closets": restore_rows.put_closets,
    "drawers": restore_rows.put_drawers,
    "facts": restore_rows.put_facts,
    "fact_events": restore_rows.put_fact_events,
    "episodes": restore_rows.put_episodes,
    "activities": restore_rows.put_activities,
}

# Records that programs address without a palace, and their id fields.
_NAMED_ALONE = {"facts": "memory", "episodes": "id"}

NOT_EMPTY = (
    "The palace holds something by now, and a whole palace is only put back into one that holds "
    "nothing. Give the file again: its messages are brought in beside what is here."
)


def is_empty(palace: Palace) -> bool:
    """Whether the palace is empty, including the trash."""
    kinds = (Room, Fact, Entity, Episode)
    return not any(kind._default_manager.filter(palace=palace).exists() for kind in kinds)


def restore(
    palace: Palace,
    records: Callable[[], Iterable[Record]],
    on_written: Callable[[str, int], None] = lambda file, number: None,
) -> Counter[str]:
    """Restore all records of an export; returns the number per file.

    Numbers and ids are retained. But if another palace of this owner has these memories, all
    ids are new: programs address a memory without its palace. Mined drawers have their closets and
    tags, but no passages: `index_rooms` creates those, without mining again.

    Args:
        records: Returns an iterator over the records in order; called twice.
        on_written: Called with a file of the export and how many more of its records are written.

    Raises:
        BadImport: the palace is not empty, or a record is not as Loci writes it; nothing was
            changed.
    """
    with transaction.atomic():
        palace.lock()
        if not is_empty(palace):
            raise BadImport(NOT_EMPTY)
        # Remove what is unused, such as an unsorted wing.
        WingAlias.objects.filter(palace=palace).delete()
        Wing.objects.within(palace).delete()
        placed = RestoredKeys(palace, renames=_has_known_ids(palace, records()))
        counts: Counter[str] = Counter()
        for file, chunk in _chunks(records()):
            with _translate_errors(file, chunk):
                WRITERS[file](placed, [Fields(record.fields()) for record in chunk])
            counts[file] += len(chunk)
            on_written(file, len(chunk))
    return counts


def _has_known_ids(palace: Palace, records: Iterable[Record]) -> bool:
    """Whether another palace of the same owner has memories or episodes of the export."""
    owner = palace.owner_id
    for file, chunk in _chunks(record for record in records if record.file in _NAMED_ALONE):
        with _translate_errors(file, chunk):
            ids = [Fields(record.fields()).uuid(_NAMED_ALONE[file]) for record in chunk]
        if file == "facts":
            known = Fact.objects.filter(palace__owner=owner, memory__in=ids).exists()
        else:
            known = Episode.objects.filter(palace__owner=owner, uuid__in=ids).exists()
        if known:
            return True
    return False


@contextmanager
def _translate_errors(file: str, chunk: Sequence[Record]) -> Iterator[None]:
    """Translate errors in records to BadImport."""
    try:
        yield
    except (ValueError, DatabaseError) as error:
        # The database's message could quote the palace.
        why = f": {str(error)[:200]}" if isinstance(error, ValueError) else ""
        raise BadImport(
            f"Among the {file.replace('_', ' ')} in the export, from line {chunk[0].line} on, is "
            f"something that is not as Loci writes it{why}. Nothing was imported; export the "
            "palace again."
        ) from error


def _chunks(records: Iterable[Record]) -> Iterator[tuple[str, list[Record]]]:
    for file, of_file in groupby(records, lambda record: record.file):
        while chunk := list(islice(of_file, CHUNK)):
            yield file, chunk

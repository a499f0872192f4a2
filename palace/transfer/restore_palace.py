"""Restore a palace in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice

from django.db import DatabaseError, transaction

from palace.errors import BadImport
from palace.models import Entity, Episode, Fact, Palace, Room, Wing, WingAlias
from palace.transfer import restore_rows
from palace.transfer.importers.loci import Record
from palace.transfer.record_fields import Fields, RestoredKeys

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

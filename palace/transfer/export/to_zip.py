"""The export itself: `stream` is the only way to one, whichever door asks for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.utils import timezone

from palace.models import Palace
from palace.transfer.export import records
from palace.transfer.export.archive import Archive, as_line
from palace.transfer.export.pages import READ_ME, pages
from palace.transfer.importers.loci_format import (
    DATA,
    FILES,
    FORMAT,
    MANIFEST,
    PALACE,
    VERSION,
    file_of,
)

Records = Callable[[Palace], Iterator[records.Record]]

READERS: dict[str, Records] = {
    "wings": records.wings,
    "entities": records.entities,
    "rooms": records.rooms,
    "closets": records.closets,
    "drawers": records.drawers,
    "facts": records.facts,
    "fact_events": records.fact_events,
    "episodes": records.episodes,
    "activities": records.activities,
}


def stream(palace: Palace) -> Iterator[bytes]:
    """The zip, piece by piece, as it is made: the palace as it was at one moment.

    Memory does not grow with the palace. Close the iterator where it is not read to its end.
    """
    archive = Archive()
    with _one_moment():
        yield from archive.add("README.md", READ_ME.splitlines())
        yield from archive.add(PALACE, [as_line(records.palace_record(palace))])
        yield from archive.add(f"{DATA}settings.json", [as_line(records.settings_record(palace))])
        for name in FILES:
            yield from archive.add(file_of(name), map(as_line, READERS[name](palace)))
        for name, lines in pages(palace):
            yield from archive.add(name, lines)
    yield from archive.add(MANIFEST, _manifest(palace, archive))
    yield from archive.close()


def file_name() -> str:
    """What a download is called: the day, and nothing about whose it is."""
    return f"loci-palace-{timezone.now():%Y-%m-%d}.zip"


def _manifest(palace: Palace, archive: Archive) -> list[str]:
    told = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": timezone.now().isoformat(),
        "palace": str(palace.uuid),
        "counts": {name: archive.members[file_of(name)]["lines"] for name in FILES},
        "files": archive.members,
    }
    return json.dumps(told, indent=1, ensure_ascii=False).splitlines()


@contextmanager
def _one_moment() -> Iterator[None]:
    """What is written meanwhile is not seen: no fact rests on a message that is not there."""
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield

"""Mining: conversations into the palace. `mine` is the way in; it may be killed and repeated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import connection, transaction

from palace.indexing import postings
from palace.indexing.analyzer import analyze
from palace.indexing.passages import Embedded
from palace.indexing.passages import store as store_passages
from palace.indexing.spaces import active_space, stays_active
from palace.mining.filing import Filed, file_transcript
from palace.mining.linking import Landed, Linker
from palace.mining.reading import Reading, read
from palace.mining.reports import Report
from palace.mining.windows import WHOLE, WINDOWS_A_BATCH, windows
from palace.models import Drawer, Palace, Room
from palace.models.hierarchy import DrawerQuerySet
from palace.models.locks import held_if_free
from palace.transcripts import Transcript


@dataclass(frozen=True, slots=True)
class Mined:
    """What a mining run made.

    Attributes:
        made: How many drawers, topics, entities, mentions and passages landed.
        notes: What was degraded, in sentences.
    """

    made: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()


def mine(palace: Palace, transcript: Transcript) -> tuple[Filed, Mined]:
    """File a conversation verbatim and make it findable.

    Doing it twice, or at once in two places, leaves the same palace. Killed in between, the
    drawers that were filed are mined by the next run, or by the periodic task.
    """
    filed = file_transcript(palace, transcript)
    return filed, mine_room(filed.room) if filed.room else Mined()


def mine_room(room: Room) -> Mined:
    """Make topics, tags, passages and postings of the room's drawers that have none yet.

    Returns at once, with nothing made, while another process is mining this room.
    """
    report = Report(room)
    while _unmined(room).exists():
        with held_if_free(f"mine room {room.pk}") as ours:
            if not ours:
                break
            for batch in _batches(room):
                _mine_batch(room, batch, report)
    return Mined(report.made, tuple(report.notes))


def _batches(room: Room) -> Iterator[list[list[Drawer]]]:
    """Batches of windows, each read from the database when its turn comes."""
    while True:
        length = Drawer.objects.filter(
            palace=room.palace_id, source=room.source, conversation=room.external_id
        ).count()
        # One window more than a batch may need, so that its last one is whole.
        enough = WHOLE + WINDOWS_A_BATCH * 10
        pending = windows(list(_unmined(room).in_order()[:enough]), length)
        if not pending:
            return
        yield pending[:WINDOWS_A_BATCH]


def _mine_batch(room: Room, batch: list[list[Drawer]], report: Report) -> None:
    drawers = [drawer for window in batch for drawer in window]
    embedded = Embedded(room.palace, active_space(), [drawer.text for drawer in drawers])
    reading = read(room, batch, embedded.centroids())
    terms = {drawer.pk: analyze(drawer.text) for drawer in drawers}
    with transaction.atomic():
        room.palace.lock()
        # Whoever came second finds the drawers mined and leaves everything as it is.
        held = _unmined(room).select_for_update().filter(pk__in=terms)
        as_read = set(held.values_list("pk", flat=True)) == set(terms)
        if as_read and stays_active(embedded.space):
            report.add(_write(room, reading, embedded, drawers, terms))


def _write(
    room: Room,
    reading: Reading,
    embedded: Embedded,
    drawers: list[Drawer],
    terms: dict[int, Counter[str]],
) -> Landed:
    landed = Linker(room).link(reading)
    store_passages(room.palace, list(terms), embedded, only=terms)
    postings.append(room.palace, terms)
    for drawer in drawers:
        drawer.terms = terms[drawer.pk].total()
    _mark_mined(room, drawers)
    landed.made["drawers"] += len(drawers)
    landed.made["passages"] += sum(map(len, embedded.spans))
    if embedded.note:
        landed.notes.append(embedded.note)
    return landed


def _mark_mined(room: Room, drawers: list[Drawer]) -> None:
    """One statement for all: `bulk_update` would send a CASE with as many arms as drawers."""
    columns = zip(
        *((d.pk, d.closet_id, json.dumps(d.tags), d.preference, d.terms) for d in drawers),
        strict=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE palace_drawer d
            SET closet_id = n.closet, tags = n.tags, preference = n.preference,
                terms = n.terms, mined_at = now()
            FROM unnest(%s::bigint[], %s::bigint[], %s::jsonb[], %s::float8[], %s::int[])
                AS n (id, closet, tags, preference, terms)
            WHERE d.palace_id = %s AND d.id = n.id
            """,
            [*map(list, columns), room.palace_id],
        )


def _unmined(room: Room) -> DrawerQuerySet:
    return Drawer.objects.filter(palace=room.palace_id, room=room).unmined()

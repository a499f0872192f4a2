"""Rooms: mine each, window by window, and write and index what mining found.

Mining sets the closet and writes the passages in one transaction. An unmined drawer with a closet
was mined in another palace, so it is indexed without extraction. Where a conversation turns to
another topic, `language.english.topics` decides.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from django.db import connection, transaction

from language.analyzer import analyze
from language.english.message_traits import read_traits
from language.facts import Candidate
from llm import deadline
from llm.database_writes import commit_without_waiting
from llm.deadline import DeadlinePassed
from llm.providers import Endpoint
from palace.mining.batches import Part, batches
from palace.mining.room_placement import Landed, link
from palace.mining.window_reader import Memories, Reading, WindowReader
from palace.models import Activity, Drawer, DrawerQuerySet, Palace, Room
from palace.models.concurrency import held_where_free
from palace.storage import EmbeddedPassages, store_passages
from palace.storage.indexing import postings
from palace.storage.indexing.spaces import active_space, stays_active

# Messages mined together: a full embedder batch.
GROUP = 192
# Within a deadline, a batch has about this many characters, which are embedded in about a second.
SHORT_CHARS = 20_000
# Drawers per embedder call.
BATCH = 384


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts that a model found in a window, in addition to topics and names.

    Attributes:
        endpoint: The model that found them.
    """

    drawers: Sequence[Drawer]
    facts: Sequence[Candidate]
    endpoint: Endpoint | None


# Called after each batch, outside of its transaction, with the facts found in its windows.
Learn = Callable[[Palace, Sequence[ModelFacts]], None]
# Called last in a batch's transaction if one of its conversations is of an area of life. May join
# rooms.
Settle = Callable[[Palace], None]


@dataclass(frozen=True, slots=True)
class Mined:
    """The result of a mining run.

    Attributes:
        made: Numbers of drawers, topics, entities, mentions and passages written.
        notes: Sentences on what was degraded.
    """

    made: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()


def mine_rooms(rooms: Sequence[Room], learn: Learn, memories: Memories, settle: Settle) -> Mined:
    """Compute topics, tags, passages and postings of the unmined drawers of these rooms.

    The rooms belong to one palace and share embedder calls and transactions. Rooms that another
    process is mining are skipped. Within a deadline (`llm.deadline.within`) it stops there, and
    the remaining drawers stay unmined; but a short first batch is always mined.

    Args:
        learn: Receives the facts that a model found during mining, which saves a second model
            call. If the process dies before, fact extraction runs separately.
        memories: Gives what such a model is told besides.
        settle: Makes the wings that are due.
    """
    reports = {room.pk: Report(room) for room in rooms}
    with suppress(DeadlinePassed):
        _mine_all(rooms, reports, learn, memories, settle)
    made = sum((report.made for report in reports.values()), Counter[str]())
    notes = dict.fromkeys(note for report in reports.values() for note in report.notes)
    return Mined(made, tuple(notes))


def _mine_all(
    rooms: Sequence[Room],
    reports: dict[int, Report],
    learn: Learn,
    memories: Memories,
    settle: Settle,
) -> None:
    """
    Raises:
        DeadlinePassed: Some drawers are still unmined.
    """
    most_chars = None if deadline.current() is None else SHORT_CHARS
    is_first = True
    while rooms := _with_unmined(rooms):
        with _held(rooms) as ours:
            index_placed(ours)
            for batch in batches(ours, most_chars=most_chars):
                _mine_batch(batch, reports, learn, memories, settle, is_first=is_first)
                is_first = False
            rooms = ours


def index_rooms(rooms: Sequence[Room]) -> None:
    """Index the restored drawers of rooms of one palace, without extraction.

    Rooms that another process is mining are skipped, because that process does the same.
    """
    with _held(rooms) as ours:
        index_placed(ours)


@contextmanager
def _held(rooms: Sequence[Room]) -> Iterator[list[Room]]:
    """Lock the rooms that no other process is mining."""
    names = {f"mine room {room.pk}": room for room in rooms}
    with held_where_free(names) as ours:
        yield [names[name] for name in ours]


def _with_unmined(rooms: Sequence[Room]) -> list[Room]:
    if not rooms:
        return []
    unmined = Drawer.objects.within(rooms[0].palace).unmined().filter(room__in=rooms)
    waiting = set(unmined.values_list("room_id", flat=True))
    return [room for room in rooms if room.pk in waiting]


def _mine_batch(
    batch: Sequence[Part],
    reports: dict[int, Report],
    learn: Learn,
    memories: Memories,
    settle: Settle,
    *,
    is_first: bool,
) -> None:
    drawers = [drawer for part in batch for drawer in part.drawers]
    palace, space = batch[0].room.palace, active_space()
    texts = [drawer.text for drawer in drawers]
    # Embedding takes nearly all the time.
    with nullcontext() if is_first and _is_short(texts) else deadline.interruptible():
        embedded = EmbeddedPassages(palace, space, drawers)
    reader = WindowReader(palace, space, memories)
    readings = reader.read(batch, embedded.centroids())
    notes = [note for note in (embedded.note, reader.note) if note]
    with transaction.atomic():
        # A power failure loses the rows together with their `mined_at`, so the work is repeated.
        commit_without_waiting()
        palace.lock()
        parts = _still_unmined(palace, batch)
        if parts and stays_active(space):
            passages = dict(zip((d.pk for d in drawers), map(len, embedded.spans), strict=True))
            read = dict(zip(batch, readings, strict=True))
            _link(palace, {part: read[part] for part in parts}, passages, notes, reports)
            write_mined(palace, drawers, embedded, [d for part in parts for d in part.drawers])
            rooms = Room.objects.within(palace).filter(pk__in=[part.room.pk for part in parts])
            rooms.mark_episode_due()
            if any(read[part].windows[0][1].wing.is_area for part in parts):
                settle(palace)
    learn(palace, list(_found(readings, reader)))


def _is_short(texts: Iterable[str]) -> bool:
    return sum(map(len, texts)) <= SHORT_CHARS


def _found(readings: Iterable[Reading], reader: WindowReader) -> Iterator[ModelFacts]:
    for reading in readings:
        for window, extraction in reading.windows:
            if extraction.facts is not None:
                yield ModelFacts(window, extraction.facts, reader.endpoint)


def _still_unmined(palace: Palace, batch: Sequence[Part]) -> list[Part]:
    """The parts whose drawers are all still unmined and in their room; the drawers are locked."""
    wanted = [drawer.pk for part in batch for drawer in part.drawers]
    locked = Drawer.objects.within(palace).unmined().filter(pk__in=wanted).order_by("pk")
    rooms = dict(locked.select_for_update().values_list("pk", "room_id"))
    return [part for part in batch if all(rooms.get(d.pk) == part.room.pk for d in part.drawers)]


def _link(
    palace: Palace,
    read: Mapping[Part, Reading],
    passages: Mapping[int, int],
    notes: Sequence[str],
    reports: Mapping[int, Report],
) -> None:
    """
    Args:
        passages: Number of passages by drawer key.
        notes: Sentences on what was degraded in all parts.
    """
    linked = link(palace, {part.room.pk: reading for part, reading in read.items()})
    activities = []
    for part, one in zip(read, linked, strict=True):
        one.landed.made["drawers"] += len(part.drawers)
        one.landed.made["passages"] += sum(passages[drawer.pk] for drawer in part.drawers)
        one.landed.notes += notes
        activities.append(reports[one.room.pk].add(one.room, one.landed))
    save(activities)


class Report:
    """One activity per run, updated in the transaction of each batch.

    So a killed run has reported exactly what it committed.

    Attributes:
        made: Numbers of drawers, topics, entities, mentions and passages written.
        notes: Sentences on what was degraded, each once.
    """

    def __init__(self, room: Room) -> None:
        self.made: Counter[str] = Counter()
        self.notes: dict[str, None] = {}
        self._activity = Activity(palace_id=room.palace_id, kind=Activity.Kind.MEMORY_MINED)

    def add(self, room: Room, landed: Landed) -> Activity:
        """Add a batch's results; the caller saves the activity in the same transaction.

        Args:
            room: With its title and wing from mining.
        """
        self.made.update(landed.made)
        if self._activity.pk:
            # What follows mining may have added notes since.
            self._activity.refresh_from_db(fields=["detail"])
            self.notes.update(dict.fromkeys(self._activity.detail["notes"]))
        self.notes.update(dict.fromkeys(landed.notes))
        self._activity.summary = Activity.summary_of_mining(self.made["drawers"], room)
        self._activity.detail = {
            "room": str(room.uuid),
            "made": dict(self.made),
            "notes": list(self.notes),
        }
        return self._activity


def save(activities: Sequence[Activity]) -> None:
    """Update the activities of earlier batches, and insert all others in one statement."""
    for activity in [each for each in activities if each.pk]:
        activity.save()
    Activity.objects.bulk_create([each for each in activities if not each.pk])


def placed(palace: Palace) -> DrawerQuerySet:
    """Drawers with a closet that are not indexed yet, also in the trash."""
    drawers = Drawer.objects.within(palace)
    return drawers.filter(mined_at=None, closet__isnull=False)


def index_placed(rooms: Sequence[Room]) -> None:
    """Write passages and postings of the placed drawers in rooms of one palace.

    The caller holds the rooms' locks. Safe to kill and repeat.
    """
    if not rooms:
        return
    palace = rooms[0].palace
    waiting = placed(palace).filter(room__in=rooms).order_by("room_id", "position", "pk")
    while drawers := list(waiting[:BATCH]):
        _index(palace, drawers)


def _index(palace: Palace, drawers: Sequence[Drawer]) -> None:
    space = active_space()
    embedded = EmbeddedPassages(palace, space, drawers)
    with transaction.atomic():
        # A power failure loses the rows together with their `mined_at`, so the work is repeated.
        commit_without_waiting()
        palace.lock()
        locked = placed(palace).filter(pk__in=[drawer.pk for drawer in drawers]).order_by("pk")
        keys = set(locked.select_for_update().values_list("pk", flat=True))
        if stays_active(space):
            write_mined(palace, drawers, embedded, [each for each in drawers if each.pk in keys])


def write_mined(
    palace: Palace, drawers: Sequence[Drawer], embedded: EmbeddedPassages, written: Sequence[Drawer]
) -> None:
    """Write mined drawers. Call it in a transaction that locks the palace and the drawers.

    Args:
        drawers: The embedded drawers, in the order of `embedded`.
        written: The subset to write, with closets, tags and preferences set.
    """
    terms = {drawer.pk: analyze(drawer.text) for drawer in written}
    store_passages(palace, [drawer.pk for drawer in drawers], embedded, only=terms)
    postings.append(palace, terms)
    for drawer in written:
        drawer.terms = terms[drawer.pk].total()
        drawer.traits = int(read_traits(drawer.text))
    mark_mined(palace, written)


def mark_mined(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Update all in one statement: `bulk_update` would send a CASE with an arm per drawer."""
    columns = zip(
        *(
            (d.pk, d.closet_id, json.dumps(d.tags), d.preference, d.terms, d.traits)
            for d in drawers
        ),
        strict=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE palace_drawer d
            SET closet_id = n.closet, tags = n.tags, preference = n.preference,
                terms = n.terms, traits = n.traits, mined_at = now()
            FROM unnest(%s::bigint[], %s::bigint[], %s::jsonb[], %s::float8[], %s::int[],
                %s::smallint[]) AS n (id, closet, tags, preference, terms, traits)
            WHERE d.palace_id = %s AND d.id = n.id
            """,
            [*map(list, columns), palace.pk],
        )

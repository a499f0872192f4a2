"""Mining: conversations into the palace. `mine` is the way in; it may be killed and repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import transaction

from llm.commits import commit_without_waiting
from palace.knowledge.episodes.due import mark_due
from palace.knowledge.episodes.writing import write_episodes
from palace.knowledge.facts.learning import BY_MINING, learn_room, write_read
from palace.knowledge.facts.tellings import any_told
from palace.mining.batches import Part, batches
from palace.mining.linking import link
from palace.mining.placed import index_placed
from palace.mining.reading import Reader, Reading
from palace.mining.reports import Report, save
from palace.mining.writing import write_mined
from palace.models import Drawer, Palace, Room
from palace.models.locks import held_where_free
from palace.storage.filing.file import Filed, file_transcript, file_transcripts
from palace.storage.indexing.passages import Embedded
from palace.storage.indexing.spaces import active_space, stays_active
from palace.transcripts import Transcript

# Messages that are worth mining together: a full load for the embedder.
GROUP = 192
# Where nobody waits to see the first ones. They are filed at once, and mined in full batches.
LARGE_GROUP = 768


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
    """File a conversation verbatim, make it findable, learn what it says, and sum it up.

    Doing it twice, or at once in two places, leaves the same palace. Killed in between, the
    drawers that were filed are mined by the next run, or by the periodic task.
    """
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return filed, Mined()
    mined = mine_room(filed.room)
    learn_room(filed.room)
    write_episodes(palace, [filed.room])
    return filed, mined


def mine_many(palace: Palace, transcripts: Iterable[Transcript]) -> int:
    """`mine` for many conversations, faster than one by one. Returns the messages stored.

    The caller keeps the transcripts until it returns: they are filed many at once, and a power
    cut may take the last ones filed.
    """
    stored = 0
    for group in _groups(transcripts):
        with transaction.atomic():
            commit_without_waiting()
            filed = file_transcripts(palace, group)
        stored += sum(each.stored for each in filed)
        mine_rooms([each.room for each in filed if each.room])
    return stored


def _groups(transcripts: Iterable[Transcript]) -> Iterator[list[Transcript]]:
    group: list[Transcript] = []
    size = 0
    for transcript in transcripts:
        group.append(transcript)
        size += len(transcript.turns)
        if size >= LARGE_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def mine_room(room: Room) -> Mined:
    """Make topics, tags, passages and postings of the room's drawers that have none yet.

    Returns at once, with nothing made, while another process is mining this room.
    """
    return mine_rooms([room])


def mine_rooms(rooms: Sequence[Room]) -> Mined:
    """`mine_room` for rooms of one palace: they share calls to the embedder and transactions."""
    reports = {room.pk: Report(room) for room in rooms}
    while rooms := _with_unmined(rooms):
        with _held(rooms) as ours:
            index_placed(ours)
            for batch in batches(ours):
                _mine_batch(batch, reports)
            rooms = ours
    made = sum((report.made for report in reports.values()), Counter[str]())
    notes = dict.fromkeys(note for report in reports.values() for note in report.notes)
    return Mined(made, tuple(notes))


def index_rooms(rooms: Sequence[Room]) -> None:
    """Make findable what came to rooms of one palace with its closets, and read nothing.

    Rooms that another process is mining are left to that one, which does the same.
    """
    with _held(rooms) as ours:
        index_placed(ours)


@contextmanager
def _held(rooms: Sequence[Room]) -> Iterator[list[Room]]:
    """Those of the rooms that nobody else is mining."""
    names = {f"mine room {room.pk}": room for room in rooms}
    with held_where_free(names) as ours:
        yield [names[name] for name in ours]


def _with_unmined(rooms: Sequence[Room]) -> list[Room]:
    if not rooms:
        return []
    unmined = Drawer.objects.within(rooms[0].palace).unmined().filter(room__in=rooms)
    waiting = set(unmined.values_list("room_id", flat=True))
    return [room for room in rooms if room.pk in waiting]


def _mine_batch(batch: Sequence[Part], reports: dict[int, Report]) -> None:
    drawers = [drawer for part in batch for drawer in part.drawers]
    palace, space = batch[0].room.palace, active_space()
    embedded = Embedded(palace, space, [drawer.text for drawer in drawers])
    reader = Reader(palace, space)
    readings = reader.read(batch, embedded.centroids())
    notes = [note for note in (embedded.note, reader.note) if note]
    with transaction.atomic():
        # Lost to a power cut, it is mined again: the mark that it was mined is lost with it.
        commit_without_waiting()
        palace.lock()
        parts = _still_unmined(palace, batch)
        if parts and stays_active(space):
            passages = dict(zip((d.pk for d in drawers), map(len, embedded.spans), strict=True))
            read = dict(zip(batch, readings, strict=True))
            _link(palace, {part: read[part] for part in parts}, passages, notes, reports)
            write_mined(palace, drawers, embedded, [d for part in parts for d in part.drawers])
            mark_due(palace, [part.room.pk for part in parts])
    _learn(palace, readings, reader)


def _learn(palace: Palace, readings: Iterable[Reading], reader: Reader) -> None:
    """Keep the facts that a model has found along with the rest: it is asked but once.

    Should the process die before, the drawers are read for facts by themselves; so are those
    whose teller has them read in another way.
    """
    for reading in readings:
        for window, extraction in reading.windows:
            if extraction.facts is not None and not any_told(palace, window):
                write_read(palace, window, extraction.facts, BY_MINING, reader.endpoint)


def _still_unmined(palace: Palace, batch: Sequence[Part]) -> list[Part]:
    """Whoever came second finds the drawers mined, and leaves that room as it is."""
    wanted = [drawer.pk for part in batch for drawer in part.drawers]
    held = Drawer.objects.within(palace).unmined().filter(pk__in=wanted).order_by("pk")
    rooms = dict(held.select_for_update().values_list("pk", "room_id"))
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
        passages: How many each drawer has, by its key.
        notes: What was degraded in all of the parts.
    """
    linked = link(palace, {part.room.pk: reading for part, reading in read.items()})
    activities = []
    for part, one in zip(read, linked, strict=True):
        one.landed.made["drawers"] += len(part.drawers)
        one.landed.made["passages"] += sum(passages[drawer.pk] for drawer in part.drawers)
        one.landed.notes += notes
        activities.append(reports[one.room.pk].add(one.room, one.landed))
    save(activities)

"""Mining rooms: topics, tags, passages and postings of drawers that have none yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import transaction

from language.candidate import Candidate
from llm.commits import commit_without_waiting
from llm.providers import Endpoint
from palace.mining.batches import Part, batches
from palace.mining.placement import index_placed, write_mined
from palace.mining.reports import Report, save
from palace.mining.room_linker import link
from palace.mining.window_reader import Reading, WindowReader
from palace.models import Drawer, Palace, Room
from palace.models.locks import held_where_free
from palace.storage.indexing.passages import Embedded
from palace.storage.indexing.spaces import active_space, stays_active

# Messages that are worth mining together: a full load for the embedder.
GROUP = 192


@dataclass(frozen=True, slots=True)
class Found:
    """What the model that read a window found in its drawers beside topics and names.

    Attributes:
        endpoint: The model that read them.
    """

    drawers: Sequence[Drawer]
    facts: Sequence[Candidate]
    endpoint: Endpoint | None


# Called after each batch, outside of its transaction, with what its windows say.
Learn = Callable[[Palace, Sequence[Found]], None]


@dataclass(frozen=True, slots=True)
class Mined:
    """What a mining run made.

    Attributes:
        made: How many drawers, topics, entities, mentions and passages landed.
        notes: What was degraded, in sentences.
    """

    made: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()


def mine_rooms(rooms: Sequence[Room], learn: Learn) -> Mined:
    """Make topics, tags, passages and postings of these rooms' drawers that have none yet.

    The rooms are of one palace and share calls to the embedder and transactions. Rooms that
    another process is mining are left to that one.

    Args:
        learn: Is given the facts that a model found while it read, so that it is asked but once.
            Should the process die before, the drawers are read for facts by themselves.
    """
    reports = {room.pk: Report(room) for room in rooms}
    while rooms := _with_unmined(rooms):
        with _held(rooms) as ours:
            index_placed(ours)
            for batch in batches(ours):
                _mine_batch(batch, reports, learn)
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


def _mine_batch(batch: Sequence[Part], reports: dict[int, Report], learn: Learn) -> None:
    drawers = [drawer for part in batch for drawer in part.drawers]
    palace, space = batch[0].room.palace, active_space()
    embedded = Embedded(palace, space, [drawer.text for drawer in drawers])
    reader = WindowReader(palace, space)
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
            rooms = Room.objects.within(palace).filter(pk__in=[part.room.pk for part in parts])
            rooms.mark_episode_due()
    learn(palace, list(_found(readings, reader)))


def _found(readings: Iterable[Reading], reader: WindowReader) -> Iterator[Found]:
    for reading in readings:
        for window, extraction in reading.windows:
            if extraction.facts is not None:
                yield Found(window, extraction.facts, reader.endpoint)


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

"""Learning: what drawers say, into facts. Each drawer is read once, whoever comes first."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from language.english.facts.reading import read_facts
from language.facts import Candidate
from language.transcripts import Role, Turn
from llm.providers import Endpoint
from palace.knowledge.facts.fact_reader import FactReader
from palace.knowledge.facts.fact_writer import Remembered, Writer
from palace.knowledge.facts.ingestion_options import grouped_by_options, settle
from palace.knowledge.facts.judge import Judge
from palace.knowledge.facts.reconciliation import arrived_late, reconcile
from palace.knowledge.facts.scope import DEFAULT_OPTIONS, ExtractionOptions, Scope
from palace.knowledge.facts.statements import record
from palace.models import Drawer, Palace, Room, Statement
from palace.models.locks import held_if_free
from palace.storage.indexing.fact_vectors import Vector, embed_texts, fill_missing
from palace.storage.indexing.spaces import active_space

# Messages that a model reads together: it needs the ones around to tell what "it" is. The local
# rules read each by itself, and many at once are cheaper to write.
WINDOW = 10
CHUNK = 200
# Messages of older conversations that are judged together, at most.
MOST_AT_ONCE = 2000

BY_MINING = Scope("mining")

Told = tuple[Candidate, Vector | None]


def learn_unread(palace: Palace, *, seconds: float | None = None) -> bool:
    """Read what has been mined and not yet read for facts, older conversations first.

    Where somebody else is at it in this palace, nothing is done: the order would be lost.
    Conversations older than what is known are judged many at a time: each time that is done,
    all that is known is judged again.

    Returns:
        Whether all was read, or is being read; False when the time was over first.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    with held_if_free(f"learn facts of palace {palace.pk}") as ours:
        while ours and (room := _next_room(palace)):
            if is_late(palace, room) and FactReader(palace).endpoint is None:
                learn_late(palace)
            else:
                learn_room(room)
            if deadline is not None and time.monotonic() > deadline:
                return _next_room(palace) is None
    return True


def _next_room(palace: Palace) -> Room | None:
    return _unread_rooms(palace).first()


def _unread_rooms(palace: Palace) -> QuerySet[Room]:
    unread = Drawer.objects.within(palace).unread()
    rooms = Room.objects.within(palace).filter(pk__in=unread.values("room"))
    return rooms.select_related("palace").order_by("started_at", "pk")


def is_late(palace: Palace, room: Room) -> bool:
    """Whether a statement is known that was said after the first unread message of a room."""
    unread = Drawer.objects.within(palace).unread().filter(room=room)
    since = unread.aggregate(Min("said_at"))["said_at__min"]
    later = Drawer.objects.within(palace).kept().filter(said_at__gt=since)
    return Statement.objects.filter(palace=palace, drawer__in=later.values("pk")).exists()


def learn_late(palace: Palace) -> None:
    """Read the oldest unread conversations by the local rules, and judge them in one go.

    The more statements there are, the more messages are read at a time. All of them land in one
    transaction. Killed before, they are read by whoever comes next.
    """
    most = min(max(CHUNK, Statement.objects.filter(palace=palace).count()), MOST_AT_ONCE)
    rooms: list[Room] = []
    count = 0
    for room in _unread_rooms(palace).iterator(CHUNK):
        rooms.append(room)
        count += Drawer.objects.within(palace).unread().filter(room=room).count()
        if count >= most:
            break
    readings = [reading for room in rooms for reading in _readings(palace, room)]
    with transaction.atomic():
        palace.lock()
        for agent, run in sorted({scope for each in readings if (scope := each.record(palace))}):
            reconcile(palace, active_space(), replace(BY_MINING, agent=agent, run=run))


@dataclass(frozen=True, slots=True)
class Reading:
    """What the local rules found in messages of one conversation, not yet judged."""

    drawers: Sequence[Drawer]
    candidates: Sequence[Candidate]
    scope: Scope

    def record(self, palace: Palace) -> tuple[str, str] | None:
        """Keep what nobody else has read meanwhile; returns agent and run, if that is anything."""
        kept = _mark_read(palace, self.drawers)
        told = [(one, None) for one in self.candidates if _is_kept(one, self.drawers, kept)]
        record(palace, self.drawers, told, self.scope)
        return (self.scope.agent, self.scope.run) if told else None


def _readings(palace: Palace, room: Room) -> Iterator[Reading]:
    """What a room says that can be judged later; what cannot is judged now."""
    unread = Drawer.objects.within(palace).unread().filter(room=room)
    drawers = list(unread.order_by("position", "pk"))
    for scope, options, stretch in grouped_by_options(palace, drawers, BY_MINING):
        if options.filters is not None:
            learn(palace, stretch, scope, options)
            continue
        candidates = read_facts([_turn(drawer) for drawer in stretch])
        embed_texts(palace, active_space(), [candidate.text for candidate in candidates])
        yield Reading(stretch, candidates, scope)


def _is_kept(candidate: Candidate, drawers: Sequence[Drawer], kept: Collection[int]) -> bool:
    return all(drawers[span.turn].pk in kept for span in candidate.words)


def learn_room(room: Room) -> list[Remembered]:
    """Read what is unread in one room, each message as whoever told it has it read."""
    palace = room.palace
    unread = Drawer.objects.within(palace).unread().filter(room=room)
    drawers = list(unread.order_by("position", "pk"))
    remembered: list[Remembered] = []
    for scope, options, stretch in grouped_by_options(palace, drawers, BY_MINING):
        remembered += learn(palace, stretch, scope, options)
    return remembered


def learn(
    palace: Palace,
    drawers: Sequence[Drawer],
    scope: Scope,
    options: ExtractionOptions = DEFAULT_OPTIONS,
) -> list[Remembered]:
    """Facts from drawers of one conversation, in order, a window at a time.

    A window is one transaction: what it says lands as a whole, and once. Killed in between, the
    drawers that were not read yet are read by whoever comes next. Doing it twice, or at once in
    two places, leaves the same facts.
    """
    reader = FactReader(palace, options.prompt)
    size = WINDOW if reader.endpoint else CHUNK
    remembered: list[Remembered] = []
    for window in _windows(drawers, size):
        candidates = reader.read([_turn(drawer) for drawer in window])
        remembered += write_read(palace, window, candidates, scope, reader.endpoint, options)
    return remembered


def _windows(drawers: Sequence[Drawer], size: int) -> Iterator[Sequence[Drawer]]:
    for first in range(0, len(drawers), size):
        yield drawers[first : first + size]


def write_read(
    palace: Palace,
    drawers: Sequence[Drawer],
    candidates: Sequence[Candidate],
    scope: Scope,
    endpoint: Endpoint | None,
    options: ExtractionOptions = DEFAULT_OPTIONS,
) -> list[Remembered]:
    """Judge what was found in drawers and write it down, in one transaction.

    What somebody else has read meanwhile is left alone.

    Args:
        endpoint: Of the model that judges; None for the local rules.
    """
    space = active_space()
    vectors = embed_texts(palace, space, [candidate.text for candidate in candidates])
    judge = Judge(palace, space, scope, endpoint, options)
    judge.look_ahead(candidates, vectors)
    with transaction.atomic():
        palace.lock()
        kept = _mark_read(palace, drawers)
        told = [
            (candidate, vector)
            for candidate, vector in zip(candidates, vectors, strict=True)
            if _is_kept(candidate, drawers, kept)
        ]
        lines = _written(judge, Writer(palace, space, scope, drawers), told, drawers)
    # What was merged says something else than the statement whose vector there is.
    fill_missing(palace, space, [line.fact for line in lines if line.fact])
    return lines


def _written(
    judge: Judge, writer: Writer, told: Sequence[Told], drawers: Sequence[Drawer]
) -> list[Remembered]:
    """Judge and write in the order of saying: with what is known, or all of the scope again."""
    palace, scope = judge.palace, judge.scope
    if judge.options.filters is not None:
        # Judged beside a part of what is known, it cannot be judged again among all of it.
        lines = [writer.write(judge.judge(*one), one[0].text, one[1]) for one in told]
        return [line for line in lines if line]
    statements = record(palace, drawers, [(one, judge.ahead(one)) for one, _ in told], scope)
    if arrived_late(palace, statements):
        work = reconcile(palace, judge.space, scope)
        lines = [work.line_of(statement) for statement in statements]
    else:
        lines = [
            writer.write(judge.judge(*one), one[0].text, one[1], statement)
            for one, statement in zip(told, statements, strict=True)
        ]
    return [line for line in lines if line]


def _mark_read(palace: Palace, drawers: Sequence[Drawer]) -> set[int]:
    """Keys of those that nobody has read, or moved to the trash, meanwhile."""
    keys = [drawer.pk for drawer in drawers]
    unread = Drawer.objects.within(palace).filter(pk__in=keys, facts_read_at=None, trashed_at=None)
    held = set(unread.order_by("pk").select_for_update().values_list("pk", flat=True))
    unread.update(facts_read_at=timezone.now())
    settle(palace, held)
    return held


def _turn(drawer: Drawer) -> Turn:
    role = cast(Role, drawer.role)  # Filing stores no other.
    return Turn(drawer.external_id, role, drawer.text, drawer.said_at, drawer.speaker)

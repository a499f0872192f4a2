"""Learning: what drawers say, into facts. Each drawer is read once, whoever comes first."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast
from uuid import uuid4

from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from language.candidate import Candidate
from language.english.facts.reading import read_facts
from language.transcripts import Role, Transcript, Turn
from llm.providers import Endpoint
from palace.knowledge.facts.fact_reader import FactReader
from palace.knowledge.facts.fact_writer import Remembered, Writer
from palace.knowledge.facts.ingestion_options import (
    DEFAULT_OPTIONS,
    ExtractionOptions,
    Scope,
    grouped_by_options,
    keep,
    settle,
)
from palace.knowledge.facts.judge import Judge
from palace.knowledge.facts.reconciliation import arrived_late, reconcile
from palace.knowledge.facts.row_conversion import record
from palace.models import Drawer, Palace, Room, Statement
from palace.models.locks import held_if_free
from palace.storage.filing.file import file_transcript
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


def remember(
    palace: Palace,
    messages: str | Sequence[Turn],
    *,
    agent: str = "",
    run: str = "",
    conversation: str = "",
    metadata: Mapping[str, Any] | None = None,
    options: ExtractionOptions = DEFAULT_OPTIONS,
    source: str = "api",
    now: datetime | None = None,
) -> list[Remembered]:
    """Keep messages word by word, and what they say as facts.

    Call it outside of a transaction: it may ask models, which takes seconds. The drawers wait to
    be mined, like any others. Should the process die before they are read for facts, they are
    read then, for the same agent and run, and in the same manner.

    Args:
        messages: One text that the user says, or a conversation in order.
        agent: Facts are kept for, and judged beside those of, this agent; likewise `run`, which
            is also the conversation that the messages belong to.
        conversation: That where no run is named; one of its own unless given.
        metadata: Kept with each fact that is made.
        manner: How they are read and judged, where not as ever; prompts have no effect without
            a model.
        source: Which door brings it.
        now: When a text was said; the present unless given.

    Returns:
        One line a judgement, in the order of the messages; none where nothing was worth keeping.
    """
    turns = turns_of(messages, now or timezone.now())
    scope = Scope(source, agent, run, metadata or {})
    named = run or conversation or str(uuid4())
    with transaction.atomic():
        drawers = _filed(palace, Transcript(source, named, "", tuple(turns), agent))
        keep(palace, drawers, scope, options)
    return learn(palace, drawers, scope, options)


def turns_of(messages: str | Sequence[Turn], now: datetime) -> Sequence[Turn]:
    """A text is one message of the user; each gets an id of its own: said twice, it is two."""
    if isinstance(messages, str):
        return [Turn(str(uuid4()), "user", messages, now)]
    return messages


def _filed(palace: Palace, transcript: Transcript) -> list[Drawer]:
    """The drawers of these messages, in order, as far as they are to be read."""
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return []
    drawers = Drawer.objects.within(palace).filter(
        source=transcript.source,
        conversation=filed.room.external_id,
        external_id__in=[turn.external_id for turn in transcript.turns],
        facts_read_at=None,
        trashed_at=None,
    )
    return list(drawers.order_by("position"))


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

"""Learn facts from messages: file them, extract statements, judge and store them.

Each drawer is read once; a process that comes later skips it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from language.english.facts.fact_reading import read_facts
from language.facts import Candidate
from language.transcripts import Transcript, Turn
from llm import deadline, sent
from llm.database_writes import put_off
from llm.providers import Endpoint
from palace.knowledge.facts.fact_extraction import (
    DEFAULT_OPTIONS,
    ExtractionOptions,
    FactReader,
    Scope,
    delete_options,
    grouped_by_options,
    memories_about,
    store_options,
)
from palace.knowledge.facts.fact_writer import StatementOutcome, Writer
from palace.knowledge.facts.judge import CHANGED, Conversation, Judge
from palace.knowledge.facts.late_statements import arrived_late, reconcile
from palace.knowledge.facts.row_conversion import record
from palace.knowledge.facts.unsure_facts import suggest_unsure
from palace.models import Activity, Drawer, Palace, Room, Statement, opens_palace
from palace.models.concurrency import held_if_free
from palace.storage import file_transcript
from palace.storage.indexing.fact_vectors import Vector, embed_texts, fill_missing
from palace.storage.indexing.spaces import active_space

# Messages that a model reads together, as context for pronouns. The local rules read each message
# by itself; large chunks save writes.
WINDOW, CHUNK = 10, 200
# Maximum messages of older conversations that are judged together.
MOST_AT_ONCE = 2000
BY_MINING = Scope("mining")
PUT_OFF = "The messages are stored, but the disk is full or the palace locked: facts come later."
EmbeddedCandidate = tuple[Candidate, Vector | None]


class Learnt(list[StatementOutcome]):
    """One item per judgement, in the order of the messages.

    Attributes:
        notes: What was degraded, in sentences, each once.
    """

    def __init__(self, lines: Iterable[StatementOutcome] = (), notes: Iterable[str] = ()) -> None:
        super().__init__(lines)
        self.notes = list(dict.fromkeys(notes))

    def add(self, more: Learnt) -> None:
        """Append the items and the notes of another part."""
        self += more
        self.notes = list(dict.fromkeys((*self.notes, *more.notes)))


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
) -> Learnt:
    """File messages verbatim, and extract facts from them.

    Call it outside of a transaction: calls to models take seconds. Mining comes later, as for
    any drawer. If the process dies before the facts are extracted, a worker extracts them with
    the same scope and options.

    Args:
        messages: One text that the user says, or a conversation in order.
        agent: Only this agent, and calls without one, find the messages and their facts, which
            are judged against the agent's other facts.
        run: Facts are stored for this run; also the id of the conversation.
        conversation: The conversation's id if there is no run; a new one by default.
        metadata: Stored with each new fact.
        options: Prompts, which have no effect without a model, and filters.
        source: The API that the messages come from.
        now: When a text was said; the present by default.

    Returns:
        The judgements, and what was degraded.
    """
    turns = turns_of(messages, now or timezone.now())
    filed = tuple(replace(turn, only_for=agent) for turn in turns)
    scope = Scope(source, agent, run, metadata or {})
    named = run or conversation or str(uuid4())
    with transaction.atomic():
        drawers = filed_unread(palace, Transcript(source, named, "", filed, agent, is_request=True))
        store_options(palace, drawers, scope, options)
    learnt = Learnt()
    with put_off("Messages are read for facts"):
        for part in _parts(palace, drawers, scope, options):
            learnt.add(part)
        return learnt
    learnt.add(Learnt(notes=[PUT_OFF]))
    return learnt


def turns_of(messages: str | Sequence[Turn], now: datetime) -> Sequence[Turn]:
    """Convert a text to one message of the user, with a new id; repeated texts stay separate."""
    if isinstance(messages, str):
        return [Turn(str(uuid4()), "user", messages, now)]
    return messages


def filed_unread(palace: Palace, transcript: Transcript) -> list[Drawer]:
    """File messages; returns their unread drawers, in order."""
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


@opens_palace
def learn_unread(palace: Palace, *, seconds: float | None = None) -> bool:
    """Extract facts from mined drawers that were not read yet, older conversations first.

    Does nothing while another process does this in the same palace, to preserve the order.
    Conversations older than known statements are judged in large batches, because each batch
    judges all known statements again.

    Returns:
        False if the time was over first.
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
    """Whether a known statement was said after the first unread message of a room."""
    unread = Drawer.objects.within(palace).unread().filter(room=room)
    since = unread.aggregate(Min("said_at"))["said_at__min"]
    later = Drawer.objects.within(palace).kept().filter(said_at__gt=since)
    return Statement.objects.filter(palace=palace, drawer__in=later.values("pk")).exists()


def learn_late(palace: Palace) -> None:
    """Read the oldest unread conversations by the local rules, and judge them in one batch.

    The batch grows with the number of known statements. It is stored in one transaction; if the
    process dies before, the next one reads the same messages.
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
class LocalReading:
    """Candidates that the local rules found in one conversation, not yet judged."""

    drawers: Sequence[Drawer]
    candidates: Sequence[Candidate]
    scope: Scope

    def record(self, palace: Palace) -> tuple[str, str] | None:
        """Store the candidates of unread drawers; returns agent and run if there are any."""
        kept = mark_read(palace, self.drawers)
        found = [(one, None) for one in self.candidates if _is_kept(one, self.drawers, kept)]
        record(palace, self.drawers, found, self.scope)
        return (self.scope.agent, self.scope.run) if found else None


def _readings(palace: Palace, room: Room) -> Iterator[LocalReading]:
    """Read a room by the local rules. Messages with filters are judged at once."""
    unread = Drawer.objects.within(palace).unread().filter(room=room)
    drawers = list(unread.order_by("position", "pk"))
    for scope, options, stretch in grouped_by_options(palace, drawers, BY_MINING):
        if options.filters is not None:
            learn(palace, stretch, scope, options)
            continue
        candidates = read_facts([drawer.as_turn() for drawer in stretch])
        embed_texts(palace, active_space(), [candidate.text for candidate in candidates])
        yield LocalReading(stretch, candidates, scope)


def _is_kept(candidate: Candidate, drawers: Sequence[Drawer], kept: Collection[int]) -> bool:
    return all(drawers[span.turn].pk in kept for span in candidate.words)


def learn_room(room: Room) -> Learnt:
    """Extract facts from unread drawers of a room, each with its own options.

    The room's activity says what was degraded: in the background nobody reads the result.
    """
    palace = room.palace
    unread = Drawer.objects.within(palace).unread().filter(room=room)
    drawers = list(unread.order_by("position", "pk"))
    learnt = Learnt()
    for scope, options, stretch in grouped_by_options(palace, drawers, BY_MINING):
        learnt.add(learn(palace, stretch, scope, options))
    Activity.objects.note_degraded(room, learnt.notes)
    return learnt


def learn(
    palace: Palace,
    drawers: Sequence[Drawer],
    scope: Scope,
    options: ExtractionOptions = DEFAULT_OPTIONS,
) -> Learnt:
    """Extract facts from drawers of one conversation, in order, one window per transaction.

    If the process dies, the next one reads the remaining drawers. Repeated or concurrent calls
    leave the same facts. Within a deadline (`llm.deadline.within`), drawers that are not read by
    then stay unread.
    """
    learnt = Learnt()
    for part in _parts(palace, drawers, scope, options):
        learnt.add(part)
    return learnt


def _parts(
    palace: Palace, drawers: Sequence[Drawer], scope: Scope, options: ExtractionOptions
) -> Iterator[Learnt]:
    """What each window, stored by then, has taught; at last what was degraded."""
    reader = FactReader(palace, options.prompt)
    # A window is the most that is waited for, or lost, at a deadline.
    size = WINDOW if reader.endpoint or deadline.current() else CHUNK
    try:
        for window in _windows(drawers, size):
            if deadline.is_over():
                break
            yield _learn_window(palace, window, scope, reader, options)
    except deadline.DeadlinePassed:
        pass  # The window's transaction is rolled back, and its drawers stay unread.
    yield Learnt(notes=reader.notes if drawers else ())


def _learn_window(
    palace: Palace,
    window: Sequence[Drawer],
    scope: Scope,
    reader: FactReader,
    options: ExtractionOptions,
) -> Learnt:
    """
    Raises:
        DeadlinePassed: The rules took too long. What a model has read is always written.
    """
    turns = [drawer.as_turn() for drawer in window]
    memories = memories_about(palace, turns, scope) if reader.endpoint else None
    with sent.made_of(sent.references("drawer", [drawer.pk for drawer in window])):
        candidates = reader.read(turns, memories)
        with nullcontext() if reader.endpoint else deadline.interruptible():
            judge, lines = _judged(palace, window, candidates, scope, reader.endpoint, options)
        return _with_vectors(judge, lines)


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
) -> Learnt:
    """Judge candidates and store the outcome, in one transaction.

    Drawers that another process has read meanwhile are skipped.

    Args:
        endpoint: The model that judges; None for the local rules.
    """
    judge, lines = _judged(palace, drawers, candidates, scope, endpoint, options)
    return _with_vectors(judge, lines)


def _judged(
    palace: Palace,
    drawers: Sequence[Drawer],
    candidates: Sequence[Candidate],
    scope: Scope,
    endpoint: Endpoint | None,
    options: ExtractionOptions,
) -> tuple[Judge, list[StatementOutcome]]:
    space = active_space()
    vectors = embed_texts(palace, space, [candidate.text for candidate in candidates])
    judge = Judge(palace, space, scope, endpoint, options, conversation=conversation_of(drawers))
    judge.look_ahead(candidates, vectors)
    with transaction.atomic():
        palace.lock()
        kept = mark_read(palace, drawers)
        found = [
            (candidate, vector)
            for candidate, vector in zip(candidates, vectors, strict=True)
            if _is_kept(candidate, drawers, kept)
        ]
        lines = _written(judge, Writer(palace, space, scope, drawers), found, drawers)
        suggest_unsure(palace)
        return judge, lines


def _with_vectors(judge: Judge, lines: Sequence[StatementOutcome]) -> Learnt:
    """Embed the merged texts, which differ from the statements that were embedded."""
    fill_missing(judge.palace, judge.space, [line.fact for line in lines if line.fact])
    return Learnt(lines, judge.notes)


def _written(
    judge: Judge, writer: Writer, found: Sequence[EmbeddedCandidate], drawers: Sequence[Drawer]
) -> list[StatementOutcome]:
    """Judge and write in the order of saying; late statements replay the whole scope."""
    palace, scope = judge.palace, judge.scope
    if judge.options.filters is not None:
        # Statements judged against a part of the facts are not replayed among all of them.
        lines = [_write(judge, writer, one) for one in found]
        return [line for line in lines if line]
    statements = record(palace, drawers, [(one, judge.ahead(one)) for one, _ in found], scope)
    if arrived_late(palace, statements):
        work = reconcile(palace, judge.space, scope)
        if any(work.has_overruled(statement) for statement in statements):
            judge.notes.append(CHANGED)
        lines = [work.line_of(statement) for statement in statements]
    else:
        lines = [
            _write(judge, writer, one, statement)
            for one, statement in zip(found, statements, strict=True)
        ]
    return [line for line in lines if line]


def _write(
    judge: Judge, writer: Writer, found: EmbeddedCandidate, statement: Statement | None = None
) -> StatementOutcome | None:
    deadline.check()
    candidate, vector = found
    line = writer.write(judge.judge(candidate, vector), candidate.text, vector, statement)
    if statement is not None and statement.judged and judge.ahead(candidate) is None:
        # So that a replay does not follow a judgement that did not count.
        statement.judged = None
        statement.save(update_fields=["judged"])
    return line


def conversation_of(drawers: Sequence[Drawer]) -> Conversation | None:
    """The source and id of the conversation that all of these drawers belong to."""
    return (drawers[0].source, drawers[0].conversation) if drawers else None


def mark_read(palace: Palace, drawers: Sequence[Drawer]) -> set[int]:
    """Mark drawers as read; returns the keys of those that were unread and not in the trash."""
    keys = [drawer.pk for drawer in drawers]
    unread = Drawer.objects.within(palace).filter(pk__in=keys, facts_read_at=None, trashed_at=None)
    keys_read = set(unread.order_by("pk").select_for_update().values_list("pk", flat=True))
    unread.update(facts_read_at=timezone.now())
    delete_options(palace, keys_read)
    return keys_read

"""Remember: messages into facts. `remember` is the way in for doors, `learn` for mining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from palace.facts.applying import Remembered, Writer
from palace.facts.judging.judge import Judge
from palace.facts.reading import Reader
from palace.facts.scope import Scope
from palace.filing.file import file_transcript
from palace.indexing.fact_vectors import embed_texts, fill_missing
from palace.indexing.spaces import active_space
from palace.models import Drawer, Palace, Room
from palace.transcripts import Role, Transcript, Turn

__all__ = ["Remembered", "learn", "remember", "turns_of"]

# Messages that are read together: a model needs the ones around to tell what "it" is.
WINDOW = 10


def remember(
    palace: Palace,
    messages: str | Sequence[Turn],
    *,
    agent: str = "",
    run: str = "",
    metadata: Mapping[str, Any] | None = None,
    prompt: str | None = None,
    source: str = "api",
    now: datetime | None = None,
) -> list[Remembered]:
    """Keep messages word by word, and what they say as facts.

    Call it outside of a transaction: it may ask models, which takes seconds. The drawers wait to
    be mined, like any others.

    Args:
        messages: One text that the user says, or a conversation in order.
        agent: Facts are kept for, and judged beside those of, this agent; likewise `run`, which
            is also the conversation that the messages belong to.
        metadata: Kept with each fact that is made.
        prompt: What a model is told to look for, in place of our own instructions; without a
            model it has no effect.
        source: Which door brings it.
        now: When a text was said; the present unless given.

    Returns:
        One line a judgement, in the order of the messages; none where nothing was worth keeping.
    """
    turns = turns_of(messages, now or timezone.now())
    transcript = Transcript(source, run or str(uuid4()), "", tuple(turns), agent)
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return []
    ids = [turn.external_id for turn in turns]
    drawers = Drawer.objects.within(palace).filter(
        source=source, conversation=filed.room.external_id, external_id__in=ids
    )
    scope = Scope(source, agent, run, metadata or {})
    return learn(palace, list(drawers.order_by("position")), scope, prompt=prompt)


def turns_of(messages: str | Sequence[Turn], now: datetime) -> Sequence[Turn]:
    """A text is one message of the user; each gets an id of its own: said twice, it is two."""
    if isinstance(messages, str):
        return [Turn(str(uuid4()), "user", messages, now)]
    return messages


def learn_room(room: Room) -> list[Remembered]:
    """Read what has been mined of a room and not yet been read for facts.

    Doing it twice, or at once in two places, leaves the same facts.
    """
    drawers = Drawer.objects.within(room.palace).unread().filter(room=room)
    return learn(room.palace, list(drawers.order_by("position", "pk")), Scope("mining"))


def learn(
    palace: Palace, drawers: Sequence[Drawer], scope: Scope, *, prompt: str | None = None
) -> list[Remembered]:
    """Facts from drawers of one conversation, in order, window by window.

    A window is one transaction: what it says lands as a whole, and once. Killed in between, the
    drawers that were not read yet are read by whoever comes next.
    """
    remembered: list[Remembered] = []
    for window in _windows(drawers):
        remembered += _learn_window(palace, window, scope, prompt)
    return remembered


def _windows(drawers: Sequence[Drawer]) -> Iterator[Sequence[Drawer]]:
    for first in range(0, len(drawers), WINDOW):
        yield drawers[first : first + WINDOW]


def _learn_window(
    palace: Palace, drawers: Sequence[Drawer], scope: Scope, prompt: str | None
) -> list[Remembered]:
    reader = Reader(palace, prompt)
    candidates = reader.read([_turn(drawer) for drawer in drawers])
    space = active_space()
    vectors = embed_texts(palace, space, [one.text for one in candidates]) if candidates else []
    judge = Judge(palace, space, scope, reader.endpoint)
    judge.look_ahead(candidates, vectors)
    with transaction.atomic():
        palace.lock()
        if not _mark_read(palace, drawers):
            return []
        writer = Writer(palace, space, scope, drawers)
        lines = [
            line
            for candidate, vector in zip(candidates, vectors, strict=True)
            if (line := writer.write(judge.judge(candidate, vector), vector))
        ]
    # What was merged says something else than the statement whose vector there is.
    fill_missing(palace, space, [line.fact for line in lines if line.fact])
    return lines


def _mark_read(palace: Palace, drawers: Sequence[Drawer]) -> bool:
    """Whoever comes second finds them read, and has nothing to add."""
    keys = [drawer.pk for drawer in drawers]
    unread = Drawer.objects.within(palace).filter(pk__in=keys, facts_read_at=None, trashed_at=None)
    held = list(unread.order_by("pk").select_for_update().values_list("pk", flat=True))
    if len(held) < len(keys):
        return False
    unread.update(facts_read_at=timezone.now())
    return True


def _turn(drawer: Drawer) -> Turn:
    role = cast(Role, drawer.role)  # Filing stores no other.
    return Turn(drawer.external_id, role, drawer.text, drawer.said_at, drawer.speaker)

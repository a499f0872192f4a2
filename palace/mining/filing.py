"""Filing: a conversation's messages into drawers, to the byte, before anything is made of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from palace.mining.injected import without_injected_memory
from palace.mining.ordering import merged
from palace.models import Drawer, Palace, Room, Wing
from palace.storable import (
    EMPTY,
    UNSTORABLE,
    is_storable,
    storable_id,
    storable_label,
    storable_time,
)
from palace.transcripts import Transcript, Turn

DIFFERS = "differs from the message already here under the same id, which was kept"
REPEATED = "its id appears twice in the conversation"
UNTITLED = "Untitled conversation"


@dataclass(frozen=True, slots=True)
class Filed:
    """What became of a transcript: every turn was stored, was present, or was skipped.

    Attributes:
        room: Where the conversation is; None when it holds nothing to keep.
        skipped: How many turns, by reason.
    """

    room: Room | None
    stored: int
    present: int
    skipped: Counter[str]


@transaction.atomic
def file_transcript(palace: Palace, transcript: Transcript) -> Filed:
    """Keep every message of `transcript` in one drawer. Filing it again changes nothing.

    The drawers wait in their room, a new one in the unsorted wing, until `mine_room` has read them.
    """
    skipped: Counter[str] = Counter()
    transcript = _with_storable_names(transcript)
    turns = _storable(transcript, skipped)
    if not turns:
        return Filed(None, 0, 0, skipped)
    palace.lock()
    kept = _already_kept(palace, transcript)
    new = [turn for _, turn in turns if turn.external_id not in kept]
    same = sum(kept.get(turn.external_id) == turn.text for _, turn in turns)
    differing = len(turns) - len(new) - same
    if differing:
        skipped[DIFFERS] += differing
    room = _room(palace, transcript, [turn for _, turn in turns])
    _add_drawers(room, transcript, new, _positions(room, turns) if kept else _as_told(turns))
    return Filed(room, len(new), same, skipped)


def _storable(transcript: Transcript, skipped: Counter[str]) -> list[tuple[int, Turn]]:
    """The turns worth keeping, each with its place in the conversation."""
    turns: dict[str, tuple[int, Turn]] = {}
    for position, turn in enumerate(transcript.turns):
        clean = without_injected_memory(turn)
        if not clean.text.strip():
            skipped[EMPTY] += 1
        elif not is_storable(clean.text):
            skipped[UNSTORABLE] += 1
        elif clean.external_id in turns:
            skipped[REPEATED] += 1
        else:
            turns[clean.external_id] = (position, clean)
    return list(turns.values())


def _with_storable_names(transcript: Transcript) -> Transcript:
    """Ids, title, names and times are no words of the conversation: they are made to fit."""
    return dataclasses.replace(
        transcript,
        external_id=storable_id(transcript.external_id),
        title=storable_label(transcript.title),
        agent=storable_label(transcript.agent),
        turns=tuple(
            dataclasses.replace(
                turn,
                external_id=storable_id(turn.external_id),
                speaker=storable_label(turn.speaker),
                said_at=storable_time(turn.said_at),
            )
            for turn in transcript.turns
        ),
    )


def _already_kept(palace: Palace, transcript: Transcript) -> dict[str, str]:
    """Texts by message id, also of drawers in the trash or moved elsewhere."""
    drawers = Drawer.objects.filter(
        palace=palace, source=transcript.source, conversation=transcript.external_id
    )
    return dict(drawers.values_list("external_id", "text"))


def _room(palace: Palace, transcript: Transcript, turns: Sequence[Turn]) -> Room:
    first, last = min(t.said_at for t in turns), max(t.said_at for t in turns)
    rooms = Room.objects.filter(
        palace=palace, source=transcript.source, external_id=transcript.external_id
    )
    room = rooms.select_related("wing").order_by("number").first()
    if room is None:
        return Room.objects.create(
            palace=palace,
            wing=unsorted_wing(palace),
            number=_next_number(palace),
            source=transcript.source,
            external_id=transcript.external_id,
            agent=transcript.agent,
            title=transcript.title or UNTITLED,
            started_at=first,
            ended_at=last,
        )
    if first < room.started_at or last > room.ended_at:
        room.started_at = min(first, room.started_at)
        room.ended_at = max(last, room.ended_at)
        room.save(update_fields=["started_at", "ended_at"])
    return room


def _next_number(palace: Palace) -> int:
    highest = Room.objects.filter(palace=palace).aggregate(Max("number"))["number__max"] or 0
    purged = Palace.objects.values_list("highest_room", flat=True).get(pk=palace.pk)
    return max(highest, purged) + 1


def unsorted_wing(palace: Palace) -> Wing:
    wing, _ = Wing.objects.get_or_create(
        palace=palace,
        number=Wing.UNSORTED,
        defaults={"slug": "unsorted", "name": "Unsorted", "kind": Wing.Kind.TOPIC},
    )
    return wing


def _as_told(turns: Sequence[tuple[int, Turn]]) -> Mapping[str, int]:
    return {turn.external_id: place for place, turn in turns}


def _positions(room: Room, turns: Sequence[tuple[int, Turn]]) -> Mapping[str, int]:
    """Where each turn goes in the conversation, by its id; makes room for them if need be."""
    conversation = Drawer.objects.filter(
        palace=room.palace_id, source=room.source, conversation=room.external_id
    )
    kept = dict(conversation.in_order().values_list("external_id", "position"))
    told = _as_told(turns)
    order = merged(list(kept), list(told))
    if order[: len(kept)] == list(kept):
        # Only the end is new, and counts on from the last message that is here.
        last, end = next(reversed(kept.items()), ("", -1))
        offset = end - (told[last] if last in kept and last in told else -1)
        return {name: place + offset for name, place in told.items()}
    positions = {name: place for place, name in enumerate(order)}
    _move(room, {name: positions[name] for name, place in kept.items() if positions[name] != place})
    return positions


def _move(room: Room, positions: Mapping[str, int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE palace_drawer d SET position = n.position
            FROM unnest(%s::text[], %s::int[]) AS n (external_id, position)
            WHERE d.palace_id = %s AND d.source = %s AND d.conversation = %s
              AND d.external_id = n.external_id
            """,
            [
                list(positions),
                list(positions.values()),
                room.palace_id,
                room.source,
                room.external_id,
            ],
        )


def _add_drawers(
    room: Room, transcript: Transcript, turns: Sequence[Turn], positions: Mapping[str, int]
) -> None:
    drawers = Drawer.objects.filter(palace=room.palace_id, room=room)
    number = max(drawers.aggregate(Max("number"))["number__max"] or 0, room.highest_drawer)
    rows = (
        (
            *(room.palace_id, uuid4(), room.pk, number + count, transcript.source),
            *(transcript.external_id, turn.external_id, positions[turn.external_id]),
            *(turn.role, turn.speaker, turn.text, turn.said_at, "{}", 0, 0, timezone.now()),
        )
        for count, turn in enumerate(turns, start=1)
    )
    statement = (
        "COPY palace_drawer (palace_id, uuid, room_id, number, source, conversation, external_id,"
        " position, role, speaker, text, said_at, tags, preference, terms, filed_at) FROM STDIN"
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)

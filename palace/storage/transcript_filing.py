"""Filing: stores each message in one drawer of its room, in the order of the conversation."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from language.storable import (
    EMPTY,
    UNSTORABLE,
    is_storable,
    storable_id,
    storable_label,
    storable_time,
)
from language.transcripts import Transcript, Turn
from palace.models import Drawer, Palace, Room, opens_palace
from palace.storage.bulk_insert import insert_rows
from palace.storage.intake import (
    check_quota,
    next_room_number,
    purged_among,
    record_accepted,
    unsorted_wing,
)
from palace.storage.own_answers import without_loci_answers
from palace.storage.own_output import without_injected_memory

DIFFERS = "differs from the message already here under the same id, which was kept"
REPEATED = "its id appears twice in the conversation"
OURS = "recalled by Loci, which has the words already"
PURGED = "was deleted for good"
UNTITLED = "Untitled conversation"
Key = tuple[str, str]  # A conversation's source and its id there.


@dataclass(frozen=True, slots=True)
class Filed:
    """The result of filing: every turn was stored, already present, or skipped.

    Attributes:
        room: The conversation's room; None if no turn was stored or present.
        skipped: Number of turns by reason.
    """

    room: Room | None
    stored: int
    present: int
    skipped: Counter[str]


@dataclass(slots=True)
class _Conversation:
    """A transcript to file.

    Attributes:
        turns: The turns to store, each with its position in the transcript.
        kept: Texts of existing drawers by message id, also of trashed and moved ones.
    """

    transcript: Transcript
    turns: list[tuple[int, Turn]]
    skipped: Counter[str]
    kept: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.transcript.source, self.transcript.external_id

    @property
    def new(self) -> list[Turn]:
        return [turn for _, turn in self.turns if turn.external_id not in self.kept]


def file_transcript(palace: Palace, transcript: Transcript, *, beyond_quota: bool = False) -> Filed:
    """Store every message of `transcript` in one drawer. Idempotent.

    A new room is in the unsorted wing until `mine_room` processes the drawers.

    Args:
        beyond_quota: Store even what exceeds the palace's quota: it was accepted before.

    Raises:
        QuotaExceeded: the new messages exceed the palace's quota.
    """
    (filed,) = file_transcripts(palace, [transcript], beyond_quota=beyond_quota)
    return filed


@transaction.atomic
@opens_palace
def file_transcripts(
    palace: Palace, transcripts: Sequence[Transcript], *, beyond_quota: bool = False
) -> list[Filed]:
    """`file_transcript` for many, in one transaction."""
    incoming = (turn for transcript in transcripts for turn in transcript.turns)
    by_programs = {turn.text for turn in incoming if turn.role != "user"}
    left = without_loci_answers(palace, by_programs)
    cleaned = [_cleaned(transcript, left) for transcript in transcripts]
    if any(conversation.turns for conversation in cleaned):
        palace.lock()
    filed: list[Filed] = []
    for run in _without_repeats(cleaned):
        filed += _file(palace, run, beyond_quota=beyond_quota)
    return filed


def _without_repeats(conversations: Iterable[_Conversation]) -> Iterator[list[_Conversation]]:
    """Split into runs without repeated conversations, which are filed one after the other."""
    run: dict[Key, _Conversation] = {}
    for conversation in conversations:
        if conversation.key in run:
            yield list(run.values())
            run = {}
        run[conversation.key] = conversation
    yield list(run.values())


def _file(
    palace: Palace, conversations: Sequence[_Conversation], *, beyond_quota: bool
) -> Iterator[Filed]:
    for each in conversations:
        if each.transcript.is_request:
            _leave_out_purged(palace, each)
    worth_keeping = [each for each in conversations if each.turns]
    if worth_keeping:
        _look_up_kept(palace, worth_keeping)
    new = [turn.text for each in worth_keeping for turn in each.new]
    if new and not beyond_quota:
        check_quota(palace, new)
    rooms = _rooms(palace, worth_keeping)
    _add_drawers(palace, [(rooms[each.key], each) for each in worth_keeping])
    for each in conversations:
        same = sum(each.kept.get(turn.external_id) == turn.text for _, turn in each.turns)
        differing = len(each.turns) - len(each.new) - same
        if differing:
            each.skipped[DIFFERS] += differing
        yield Filed(rooms.get(each.key), len(each.new), same, each.skipped)


def _cleaned(transcript: Transcript, left: Mapping[str, str]) -> _Conversation:
    skipped: Counter[str] = Counter()
    transcript = _with_storable_names(transcript)
    return _Conversation(transcript, _storable(transcript, left, skipped), skipped)


def _storable(
    transcript: Transcript, left: Mapping[str, str], skipped: Counter[str]
) -> list[tuple[int, Turn]]:
    """The turns to store, each with its position in the transcript.

    Args:
        left: What programs' texts with answers of Loci say besides.
    """
    turns: dict[str, tuple[int, Turn]] = {}
    for position, turn in enumerate(transcript.turns):
        clean = turn
        if turn.role != "user" and turn.text in left:
            clean = dataclasses.replace(turn, text=left[turn.text])
        clean = without_injected_memory(clean, source=transcript.source)
        if not clean.text.strip():
            skipped[OURS if turn.text.strip() else EMPTY] += 1
        elif not is_storable(clean.text):
            skipped[UNSTORABLE] += 1
        elif clean.external_id in turns:
            skipped[REPEATED] += 1
        else:
            turns[clean.external_id] = (position, clean)
    return list(turns.values())


def _with_storable_names(transcript: Transcript) -> Transcript:
    """Normalise ids, title, names and times; only the text is stored verbatim."""
    return dataclasses.replace(
        transcript,
        external_id=storable_id(transcript.external_id),
        title=storable_label(transcript.title),
        agent=storable_label(transcript.agent),
        project=storable_label(transcript.project),
        turns=tuple(
            dataclasses.replace(
                turn,
                external_id=storable_id(turn.external_id),
                speaker=storable_label(turn.speaker),
                said_at=storable_time(turn.said_at),
                only_for=storable_id(turn.only_for),
            )
            for turn in transcript.turns
        ),
    )


def _leave_out_purged(palace: Palace, conversation: _Conversation) -> None:
    turns = conversation.turns
    if purged := purged_among(palace, *conversation.key, [turn.external_id for _, turn in turns]):
        conversation.turns = [each for each in turns if each[1].external_id not in purged]
        conversation.skipped[PURGED] += len(purged)


def _look_up_kept(palace: Palace, conversations: Sequence[_Conversation]) -> None:
    found: defaultdict[Key, dict[str, str]] = defaultdict(dict)
    drawers = Drawer.objects.filter(
        palace=palace,
        source__in={each.transcript.source for each in conversations},
        conversation__in={each.transcript.external_id for each in conversations},
    )
    rows = drawers.values_list("source", "conversation", "external_id", "text")
    for source, conversation, external_id, text in rows:
        found[source, conversation][external_id] = text
    for each in conversations:
        each.kept = found.get(each.key, {})


def _rooms(palace: Palace, conversations: Sequence[_Conversation]) -> Mapping[Key, Room]:
    """Each conversation's room; missing rooms are created."""
    rooms: dict[Key, Room] = {}
    present = Room.objects.filter(
        palace=palace,
        source__in={each.transcript.source for each in conversations},
        external_id__in={each.transcript.external_id for each in conversations},
    )
    for room in present.select_related("wing").order_by("number") if conversations else ():
        rooms.setdefault((room.source, room.external_id), room)
    missing = []
    for each in conversations:
        if each.key in rooms:
            _widen(rooms[each.key], each)
        else:
            missing.append(each)
    return rooms | (_new_rooms(palace, missing) if missing else {})


def _widen(room: Room, conversation: _Conversation) -> None:
    first, last = _first_and_last(conversation)
    if first < room.started_at or last > room.ended_at:
        room.started_at = min(first, room.started_at)
        room.ended_at = max(last, room.ended_at)
        room.save(update_fields=["started_at", "ended_at"])


def _new_rooms(palace: Palace, conversations: Sequence[_Conversation]) -> dict[Key, Room]:
    number, wing = next_room_number(palace), unsorted_wing(palace)
    rooms: list[Room] = []
    for each in conversations:
        first, last = _first_and_last(each)
        room = Room(
            palace=palace,
            wing=wing,
            number=number + len(rooms),
            source=each.transcript.source,
            external_id=each.transcript.external_id,
            agent=each.transcript.agent,
            title=each.transcript.title or UNTITLED,
            started_at=first,
            ended_at=last,
        )
        rooms.append(room)
    return {(room.source, room.external_id): room for room in Room.objects.bulk_create(rooms)}


def _first_and_last(conversation: _Conversation) -> tuple[datetime, datetime]:
    times = [turn.said_at for _, turn in conversation.turns]
    return min(times), max(times)


def _transcript_positions(turns: Sequence[tuple[int, Turn]]) -> Mapping[str, int]:
    return {turn.external_id: place for place, turn in turns}


def _positions(room: Room, turns: Sequence[tuple[int, Turn]]) -> Mapping[str, int]:
    """Each turn's position in the conversation by id; existing drawers are shifted if necessary."""
    conversation = Drawer.objects.filter(
        palace=room.palace_id, source=room.source, conversation=room.external_id
    )
    kept = dict(conversation.in_order().values_list("external_id", "position"))
    incoming = _transcript_positions(turns)
    order = merged(list(kept), list(incoming))
    if order[: len(kept)] == list(kept):
        # All new turns follow the last existing message.
        last, end = next(reversed(kept.items()), ("", -1))
        offset = end - (incoming[last] if last in kept and last in incoming else -1)
        return {name: place + offset for name, place in incoming.items()}
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


_COLUMNS = (
    *("palace_id", "uuid", "room_id", "number", "source", "conversation", "external_id"),
    *("position", "role", "speaker", "agent", "text", "said_at", "metadata", "tags"),
    *("preference", "terms", "filed_at"),
)


def _add_drawers(palace: Palace, filed: Sequence[tuple[Room, _Conversation]]) -> None:
    new = [_New(room, each, [(uuid4(), turn) for turn in each.new]) for room, each in filed]
    new = [each for each in new if each.turns]
    if not new:
        return
    insert_rows(Drawer, _COLUMNS, _rows(new, _highest_numbers(palace, [one.room for one in new])))
    record_accepted(palace, ((uuid, turn.text) for each in new for uuid, turn in each.turns))


class _New(NamedTuple):
    """The turns of a conversation to store, each with the uuid of its drawer."""

    room: Room
    conversation: _Conversation
    turns: Sequence[tuple[UUID, Turn]]


def _rows(new: Sequence[_New], numbers: Mapping[int, int]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    now = timezone.now()
    for room, each, turns in new:
        positions = _positions(room, each.turns) if each.kept else _transcript_positions(each.turns)
        rows += (
            (
                *(room.palace_id, uuid, room.pk, number, room.source, room.external_id),
                *(turn.external_id, positions[turn.external_id], turn.role, turn.speaker),
                *(turn.only_for, turn.text, turn.said_at, _json(turn.metadata), "{}", 0, 0, now),
            )
            for number, (uuid, turn) in enumerate(turns, start=numbers[room.pk] + 1)
        )
    return rows


def _json(metadata: Mapping[str, object] | None) -> str | None:
    return json.dumps(metadata, ensure_ascii=False) if metadata else None


def _highest_numbers(palace: Palace, rooms: Sequence[Room]) -> Mapping[int, int]:
    """The highest number that a drawer of each room has or had."""
    drawers = Drawer.objects.within(palace).filter(room__in=rooms).order_by()
    found = dict(drawers.values_list("room_id").annotate(Max("number")))
    return {room.pk: max(found.get(room.pk, 0), room.highest_drawer) for room in rooms}


def merged(kept: Sequence[str], incoming: Sequence[str]) -> list[str]:
    """Merge ids in the order of the conversation; the order of `kept` is unchanged.

    A new id is inserted after its predecessor in `incoming`, new ids at the start of `incoming`
    before their successor. If both share no id, `incoming` follows `kept`.
    """
    known = set(kept)
    leading: list[str] = []
    following: defaultdict[str, list[str]] = defaultdict(list)
    last = first = None
    for name in incoming:
        if name in known:
            last = name
            first = first or name
        elif last is None:
            leading.append(name)
        else:
            following[last].append(name)
    order: list[str] = []
    for name in kept:
        if name == first:
            order += leading
        order += [name, *following[name]]
    return order if first is not None else [*order, *leading]

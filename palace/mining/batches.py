"""Batches: unmined drawers mined in one transaction, in whole windows of a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from django.db.models import Count

from palace.models import Drawer, Room
from settings_app.models import ModelUse, settings_of

# Conversations up to this length are one window.
WHOLE = 50
# Longer ones are split by position, so that repeated runs split the same way.
WINDOW = 10
# Windows mined in one transaction: about as many drawers as in a whole conversation.
WINDOWS_A_BATCH = 6
# Turns before a window that are shown as context.
BEFORE = 4
# A batch takes whole rooms until it has this many drawers.
ENOUGH = 384
# Drawers read per batch: enough for one window more than a batch can contain of one room.
LOOKED_AT = ENOUGH + WHOLE + WINDOW * WINDOWS_A_BATCH


# Mining's own, and what reading facts asks of a drawer: each left out would be read one by one.
_READ = (
    *("room", "position", "external_id", "role", "speaker", "text", "said_at"),
    *("source", "conversation", "agent"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The windows of one room in a batch."""

    room: Room
    windows: list[list[Drawer]]

    @property
    def drawers(self) -> list[Drawer]:
        return [drawer for window in self.windows for drawer in window]


def is_at_rest(palace: int | None, room_id: int, last: int) -> bool:
    """Whether no unmined drawer follows that drawer, or enough for a window are unmined."""
    unmined = Drawer.objects.unmined().filter(palace=palace, room=room_id)
    return not unmined.filter(pk__gt=last).exists() or unmined.count() >= WINDOW


def batches(rooms: Sequence[Room], *, most_chars: int | None = None) -> Iterator[list[Part]]:
    """Batches of rooms of one palace, each read from the database on demand.

    Args:
        most_chars: Windows after the first one of a batch keep it below this length.
    """
    while rooms:
        parts = _parts(rooms)
        if not parts:
            return
        # With a model, a batch is one room, so that its results are committed without delay.
        chosen = settings_of(rooms[0].palace.owner_id)
        asks_a_model = chosen.chat_model(ModelUse.FILING).endpoint is not None
        taken = parts[:1] if asks_a_model else _enough(parts)
        yield taken if most_chars is None else [_shortened(taken[0], most_chars)]


def _shortened(part: Part, most_chars: int) -> Part:
    ends = accumulate(sum(len(drawer.text) for drawer in window) for window in part.windows)
    number = sum(end <= most_chars for end in ends)
    return Part(part.room, part.windows[: max(number, 1)])


def _parts(rooms: Sequence[Room]) -> list[Part]:
    by_key = {room.pk: room for room in rooms}
    unmined = Drawer.objects.within(rooms[0].palace).unmined().filter(room__in=rooms)
    drawers = list(unmined.only(*_READ).order_by("room_id", "position", "pk")[:LOOKED_AT])
    lengths = _lengths(rooms)
    parts = []
    for key, group in groupby(drawers, key=lambda drawer: drawer.room_id):
        room = by_key[key]
        cut = windows(list(group), lengths[room.source, room.external_id])
        parts.append(Part(room, cut[:WINDOWS_A_BATCH]))
    # The drawers read may end in the middle of the last room.
    return parts[:-1] if len(drawers) == LOOKED_AT and len(parts) > 1 else parts


def windows(drawers: Sequence[Drawer], conversation_length: int) -> list[list[Drawer]]:
    """Split unmined drawers, in order, into windows."""
    if conversation_length <= WHOLE:
        return [list(drawers)] if drawers else []
    return [list(group) for _, group in groupby(drawers, key=lambda d: d.position // WINDOW)]


def _lengths(rooms: Sequence[Room]) -> dict[tuple[str, str], int]:
    """Number of messages of each room's conversation, by source and id."""
    kept = Drawer.objects.within(rooms[0].palace).filter(
        source__in={room.source for room in rooms},
        conversation__in={room.external_id for room in rooms},
    )
    counted = kept.order_by().values_list("source", "conversation").annotate(Count("pk"))
    return {(source, conversation): count for source, conversation, count in counted}


def _enough(parts: Sequence[Part]) -> list[Part]:
    taken: list[Part] = []
    size = 0
    for part in parts:
        taken.append(part)
        size += len(part.drawers)
        if size >= ENOUGH:
            break
    return taken

"""Mining while somebody waits: filed at once, found and read for facts before a deadline."""

from __future__ import annotations

import time
from dataclasses import dataclass

from language.transcripts import Transcript
from llm.deadline import within
from palace.knowledge.facts.fact_learning import learn_room
from palace.models import Drawer, Palace, Room
from palace.pipeline.mine import mine_room
from palace.storage.filing.file import file_transcript

LATER = "Not all of it is read yet; a worker goes on with it."
_LOOK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class AtOnce:
    """
    Attributes:
        drawers: Those of the transcript, in its order; of a turn that was kept before, that one.
        notes: What was degraded, in sentences; empty where all was done as it should be.
    """

    drawers: tuple[Drawer, ...]
    notes: tuple[str, ...] = ()


def mine_at_once(palace: Palace, transcript: Transcript, *, seconds: float) -> AtOnce:
    """File a conversation's messages, make them findable and learn what they say.

    A model that is not done by then is done without. Whatever is missing after that, because the
    process died or because another one is mining the same room, the periodic tasks make up for.
    """
    deadline = time.monotonic() + seconds
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return AtOnce(())
    with within(seconds):
        mined = mine_room(filed.room)
        learn_room(filed.room)
    drawers = _drawers(palace, transcript, filed.room)
    while _unread(palace, drawers) and time.monotonic() < deadline:
        # Another process is at it: it goes on to what was filed meanwhile.
        time.sleep(_LOOK_AGAIN_S)
        mine_room(filed.room)
        learn_room(filed.room)
    late = [LATER] if _unread(palace, drawers) else []
    return AtOnce(tuple(_drawers(palace, transcript, filed.room)), (*mined.notes, *late))


def _drawers(palace: Palace, transcript: Transcript, room: Room) -> list[Drawer]:
    told = [turn.external_id for turn in transcript.turns]
    drawers = Drawer.objects.filter(
        palace=palace,
        source=transcript.source,
        conversation=room.external_id,
        external_id__in=told,
    )
    return list(drawers.order_by("position"))


def _unread(palace: Palace, drawers: list[Drawer]) -> bool:
    keys = [drawer.pk for drawer in drawers]
    mine = Drawer.objects.filter(palace=palace, pk__in=keys, trashed_at=None)
    return mine.filter(mined_at=None).exists() or mine.filter(facts_read_at=None).exists()

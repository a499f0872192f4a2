"""Synchronous mining: files messages, then indexes them and extracts facts before a deadline."""

from __future__ import annotations

import time
from dataclasses import dataclass

from language.transcripts import Transcript
from llm.deadline import within
from palace.knowledge.facts.fact_learning import learn_room
from palace.models import Drawer, Palace, Room
from palace.pipeline.mine import mine_room
from palace.storage.filing.file import file_transcript

LATER = "Some messages are not mined yet; a background worker continues."
_LOOK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class AtOnce:
    """
    Attributes:
        drawers: The drawers of the transcript's turns, new or existing, in order.
        notes: Sentences on what was degraded; empty if nothing was.
    """

    drawers: tuple[Drawer, ...]
    notes: tuple[str, ...] = ()


def mine_at_once(palace: Palace, transcript: Transcript, *, seconds: float) -> AtOnce:
    """File a conversation's messages, index them and extract their facts within `seconds`.

    A model that takes longer is skipped. Periodic tasks complete what is missing, for example
    because the process died or another one is mining the same room.
    """
    deadline = time.monotonic() + seconds
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return AtOnce(())
    with within(seconds):
        mined = mine_room(filed.room)
        learn_room(filed.room)
    drawers = _drawers(palace, transcript, filed.room)
    while _is_unread(palace, drawers) and time.monotonic() < deadline:
        # Another process is mining this room, and continues with newly filed messages.
        time.sleep(_LOOK_AGAIN_S)
        mine_room(filed.room)
        learn_room(filed.room)
    late = [LATER] if _is_unread(palace, drawers) else []
    return AtOnce(tuple(_drawers(palace, transcript, filed.room)), (*mined.notes, *late))


def _drawers(palace: Palace, transcript: Transcript, room: Room) -> list[Drawer]:
    message_ids = [turn.external_id for turn in transcript.turns]
    drawers = Drawer.objects.filter(
        palace=palace,
        source=transcript.source,
        conversation=room.external_id,
        external_id__in=message_ids,
    )
    return list(drawers.order_by("position"))


def _is_unread(palace: Palace, drawers: list[Drawer]) -> bool:
    keys = [drawer.pk for drawer in drawers]
    mine = Drawer.objects.filter(palace=palace, pk__in=keys, trashed_at=None)
    return mine.filter(mined_at=None).exists() or mine.filter(facts_read_at=None).exists()

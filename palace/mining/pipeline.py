"""The single entry of mining: file, mine, extract facts, summarise. Safe to kill and repeat.

It also makes wings of areas of life: by rules alone from three conversations on, before on request.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Window
from django.db.models.functions import RowNumber
from prometheus_client import Histogram

from language.english.topics.wings import EVERYDAY
from language.extraction import WingFound
from language.slugs import slug_of
from language.transcripts import Transcript, Turn
from llm.database_writes import commit_without_waiting, put_off
from llm.deadline import is_over, within
from llm.request_admission import waiting
from palace.curation.refiling import move_drawers
from palace.knowledge.episodes import write_episodes
from palace.knowledge.facts import (
    BY_MINING,
    have_options,
    learn_room,
    memories_about,
    write_read,
)
from palace.mining import rooms as mining
from palace.mining.batches import WINDOW, is_at_rest
from palace.mining.room_placement import ENOUGH_FOR_A_WING, put_in_project
from palace.mining.rooms import GROUP, Mined, ModelFacts, index_rooms, placed
from palace.models import (
    Activity,
    Drawer,
    Palace,
    Room,
    Wing,
    WingAlias,
    open_palace,
    opens_palace,
)
from palace.storage import Filed, file_transcript, file_transcripts, known_wing, wing_for

__all__ = [
    "GROUP",
    "WINDOW",
    "AtOnce",
    "index_rooms",
    "is_at_rest",
    "make_wing",
    "mine",
    "mine_and_learn",
    "mine_at_once",
    "mine_many",
    "mine_room",
    "mine_rooms",
    "placed",
    "put_in_project",
    "suggested_rooms",
    "suggested_wings",
]

# Messages per transaction when no user waits for the first ones; they are mined in full batches.
LARGE_GROUP = 768
LATER = "Some messages are not mined yet; a background worker continues."
FACTS_LATER = "Some messages are not read for facts yet; a background worker continues."
_LOOK_AGAIN_S = 0.1
# Of the conversations that wait for a wing, as many are named where it is suggested.
NAMED = 8

_SECONDS = Histogram(
    "loci_mining_seconds",
    "Durations of mining one or more conversations.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)


@opens_palace
def mine(palace: Palace, transcript: Transcript) -> tuple[Filed, Mined]:
    """File a conversation verbatim, index it, extract its facts and summarise it.

    Idempotent and safe to run concurrently. If killed, the next run or the periodic task mines
    the drawers already filed.
    """
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return filed, Mined()
    mined = mine_room(filed.room)
    notes = (*mined.notes, *learn_room(filed.room).notes)
    write_episodes(palace, [filed.room])
    return filed, replace(mined, notes=tuple(dict.fromkeys(notes)))


@opens_palace
def mine_many(palace: Palace, transcripts: Iterable[Transcript]) -> int:
    """`mine` for many conversations, in batches. Returns the number of messages stored.

    The caller must be able to repeat the call: commits are asynchronous, so a power failure may
    lose the last batch.
    """
    stored = 0
    for group in _groups(transcripts):
        with transaction.atomic():
            commit_without_waiting()
            filed = file_transcripts(palace, group)
        stored += sum(each.stored for each in filed)
        mine_rooms([each.room for each in filed if each.room])
    return stored


def _groups(transcripts: Iterable[Transcript]) -> Iterator[list[Transcript]]:
    group: list[Transcript] = []
    size = 0
    for transcript in transcripts:
        group.append(transcript)
        size += len(transcript.turns)
        if size >= LARGE_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def mine_room(room: Room) -> Mined:
    """Compute topics, tags, passages and postings of the room's drawers that are not mined yet.

    Does nothing if another process is mining this room.
    """
    return mine_rooms([room])


def mine_rooms(rooms: Sequence[Room]) -> Mined:
    """`mine_room` for rooms of one palace, with shared embedder calls and transactions."""
    if not rooms:
        return Mined()
    notes: list[str] = []

    def learn(palace: Palace, found: Sequence[ModelFacts]) -> None:
        """Store facts found during mining, except for drawers with their own options."""
        for each in found:
            if not have_options(palace, each.drawers):
                learnt = write_read(palace, each.drawers, each.facts, BY_MINING, each.endpoint)
                notes.extend(learnt.notes)
                if learnt.notes:
                    Activity.objects.note_degraded(each.drawers[0].room, learnt.notes)

    def memories(palace: Palace, turns: Sequence[Turn]) -> Mapping[int, str]:
        return memories_about(palace, turns, BY_MINING)

    with open_palace(rooms[0].palace), _SECONDS.time():
        mined = mining.mine_rooms(rooms, learn, memories, _make_due_wings)
    return replace(mined, notes=tuple(dict.fromkeys((*mined.notes, *notes))))


@dataclass(frozen=True, slots=True)
class AtOnce:
    """
    Attributes:
        drawers: The drawers of the transcript's turns, new or existing, in order.
        notes: Sentences on what was degraded; empty if nothing was.
        unmined: Keys of the rooms with messages that are not mined yet, to be queued.
    """

    drawers: tuple[Drawer, ...]
    notes: tuple[str, ...] = ()
    unmined: tuple[int, ...] = ()


def mine_at_once(palace: Palace, transcript: Transcript, *, seconds: float) -> AtOnce:
    """File a conversation's messages, index them and extract their facts within `seconds`.

    A model that takes longer is skipped. What is not mined by then is left to the caller to queue,
    except that a short first batch is always mined. Periodic tasks complete what is missing, for
    example because the process died, the disk was full, the palace was locked for long or another
    process is mining the same room.
    """
    notes: list[str] = []
    with within(seconds):
        filed = file_transcript(palace, transcript)
        if filed.room is None:
            return AtOnce(())
        while True:
            more = mine_and_learn(filed.room)
            notes += more or []
            drawers = _drawers(palace, transcript, filed.room)
            late = _late(drawers)
            # Where another process is mining this room, it continues with newly filed messages.
            if more is None or not late or is_over():
                break
            with waiting():
                time.sleep(_LOOK_AGAIN_S)
    unmined = (filed.room.pk,) if LATER in late else ()
    return AtOnce(tuple(drawers), tuple(dict.fromkeys([*notes, *late])), unmined)


def mine_and_learn(room: Room) -> list[str] | None:
    """Mine a room and extract its facts; returns the notes, or None if a worker has to do the rest.

    For what a request does after it has stored messages: an error would have them sent again.
    """
    with put_off("Messages are mined"):
        return [*mine_room(room).notes, *learn_room(room).notes]
    return None


def _late(drawers: Sequence[Drawer]) -> list[str]:
    kept = [drawer for drawer in drawers if drawer.trashed_at is None]
    if any(drawer.mined_at is None for drawer in kept):
        return [LATER]
    return [FACTS_LATER] if any(drawer.facts_read_at is None for drawer in kept) else []


def _drawers(palace: Palace, transcript: Transcript, room: Room) -> list[Drawer]:
    message_ids = [turn.external_id for turn in transcript.turns]
    drawers = Drawer.objects.filter(
        palace=palace,
        source=transcript.source,
        conversation=room.external_id,
        external_id__in=message_ids,
    )
    return list(drawers.order_by("position"))


@dataclass(frozen=True, slots=True)
class SuggestedWing:
    """
    Attributes:
        area: The area of life, by which the wing is called.
        wing: None if it is to be made.
        rooms: The oldest of its conversations in the catch-all wing.
        total: The number of all of these.
    """

    area: str
    wing: Wing | None
    rooms: list[Room]
    total: int

    @property
    def more(self) -> int:
        """The number of conversations that are not among `rooms`."""
        return self.total - len(self.rooms)

    @property
    def is_due(self) -> bool:
        """Whether mining files the conversations there without asking."""
        is_enough = self.wing is not None or self.total >= ENOUGH_FOR_A_WING
        return is_enough and not self.has_rules

    @property
    def has_rules(self) -> bool:
        """Whether a person says what the catch-all wing keeps; they would not apply elsewhere."""
        return self.rooms[0].wing.has_rules


def suggested_wings(palace: Palace) -> list[SuggestedWing]:
    """The areas of life, by name, of which rooms wait in the catch-all wing; no rejected ones."""
    catch_all = known_wing(palace, EVERYDAY)
    if catch_all is None:
        return []
    rejected = Palace.objects.values_list("rejected_areas", flat=True).get(pk=palace.pk)
    waiting = _waiting_in(catch_all).exclude(area__in=rejected)
    waiting = waiting.annotate(
        total=Window(Count("pk"), partition_by="area"),
        rank=Window(RowNumber(), partition_by="area", order_by=("started_at", "pk")),
    )
    found: dict[str, list[Any]] = {}
    for room in waiting.filter(rank__lte=NAMED).order_by("area", "rank"):
        room.wing = catch_all
        found.setdefault(room.area, []).append(room)
    wings = _wings_called(palace, map(slug_of, found)) if found else {}
    suggested = [
        SuggestedWing(area, wings.get(slug_of(area)), rooms, rooms[0].total)
        for area, rooms in found.items()
    ]
    # A person may have merged the catch-all wing with that of an area.
    return [each for each in suggested if each.wing != catch_all]


def _wings_called(palace: Palace, slugs: Iterable[str]) -> dict[str, Wing]:
    """`known_wing` by slug."""
    slugs = list(slugs)
    aliases = WingAlias.objects.filter(palace=palace, slug__in=slugs).select_related("wing")
    wings = Wing.objects.within(palace).filter(slug__in=slugs)
    return {alias.slug: alias.wing for alias in aliases} | {wing.slug: wing for wing in wings}


@transaction.atomic
def make_wing(palace: Palace, area: str, *, by_rules: bool = False) -> Activity | None:
    """Move what waits for a wing of an area of life to it; the wing is made if missing.

    The area is no longer rejected.

    Args:
        by_rules: Nobody was asked, so a dream may still find that a conversation is of a project.

    Returns:
        The argument for `undo_move`, after which the area is rejected if the wing was made; None
        if nothing waits.
    """
    palace.lock()
    catch_all, found = known_wing(palace, EVERYDAY), WingFound(Wing.Kind.TOPIC, area)
    waiting = _waiting_in(catch_all).filter(area=area) if catch_all else Room.objects.none()
    rooms = list(waiting.values_list("pk", flat=True))
    unsettled = list(waiting.filter(is_settled=False).values_list("pk", flat=True))
    if not rooms:
        return None
    palace.reject_areas([area], are_rejected=False)
    is_new = known_wing(palace, found) is None
    if not is_new:
        # Of no area, they stay where an undo puts them, although others are filed in the wing.
        Room.objects.within(palace).filter(pk__in=rooms).update(area="")
    drawers = Drawer.objects.within(palace).filter(room__in=rooms)
    wing = wing_for(palace, found)
    activity = move_drawers(palace, drawers, wing, made_for=area if is_new else "")
    if by_rules:
        Room.objects.within(palace).filter(pk__in=unsettled).update(is_settled=False)
    return activity


def _make_due_wings(palace: Palace) -> None:
    for each in suggested_wings(palace):
        if each.is_due:
            make_wing(palace, each.area, by_rules=True)


def suggested_rooms(palace: Palace) -> QuerySet[Room]:
    """Rooms that a dream found to be about a project, each with its `suggested` wing's name.

    None that a person has placed, or about which a person has rejected this.
    """
    projects = Wing.objects.within(palace).filter(kind=Wing.Kind.PROJECT, pk=OuterRef("project"))
    rooms = Room.objects.within(palace).filter(is_settled=False, kept_count__gt=0)
    rooms = rooms.exclude(project=None).exclude(wing=F("project")).select_related("wing")
    suggested = rooms.annotate(suggested=Subquery(projects.values("name")))
    suggested = suggested.exclude(suggested=None).annotate(drawer_count=F("kept_count"))
    return suggested.order_by("started_at", "number")


def _waiting_in(catch_all: Wing) -> QuerySet[Room]:
    """Rooms of an area without a wing, as long as a person has left them in the catch-all wing.

    None for which a dream suggests a project: one suggestion at a time.
    """
    rooms = Room.objects.within(catch_all.palace).filter(wing=catch_all, kept_count__gt=0)
    suggested = suggested_rooms(catch_all.palace).filter(wing=catch_all)
    rooms = rooms.exclude(pk__in=suggested.values("pk"))
    return rooms.exclude(area="")

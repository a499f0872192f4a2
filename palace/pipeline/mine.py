"""The single entry of mining: file, mine, extract facts, summarise. Safe to kill and repeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.db import transaction

from language.transcripts import Transcript
from llm.commits import commit_without_waiting
from palace.knowledge.episodes.episode_writer import write_episodes
from palace.knowledge.facts.fact_learning import BY_MINING, learn_room, write_read
from palace.knowledge.facts.ingestion_options import have_options
from palace.mining import rooms as mining
from palace.mining.rooms import Found, Mined
from palace.models import Palace, Room
from palace.storage.filing.file import Filed, file_transcript, file_transcripts

# Messages per transaction when no user waits for the first ones; they are mined in full batches.
LARGE_GROUP = 768


def mine(palace: Palace, transcript: Transcript) -> tuple[Filed, Mined]:
    """File a conversation verbatim, index it, extract its facts and summarise it.

    Idempotent and safe to run concurrently. If killed, the next run or the periodic task mines
    the drawers already filed.
    """
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return filed, Mined()
    mined = mine_room(filed.room)
    learn_room(filed.room)
    write_episodes(palace, [filed.room])
    return filed, mined


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
    return mining.mine_rooms(rooms, _learn)


def _learn(palace: Palace, found: Sequence[Found]) -> None:
    """Store facts found during mining, except for drawers with their own extraction options."""
    for each in found:
        if not have_options(palace, each.drawers):
            write_read(palace, each.drawers, each.facts, BY_MINING, each.endpoint)

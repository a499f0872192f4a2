"""The one entry of mining: file, mine, learn, summarise. It may be killed and repeated."""

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
from palace.models.opening import in_its_palace, open_palace
from palace.storage.filing.file import Filed, file_transcript, file_transcripts

# Messages filed at once where nobody waits to see the first ones; they are mined in full batches.
LARGE_GROUP = 768


@in_its_palace
def mine(palace: Palace, transcript: Transcript) -> tuple[Filed, Mined]:
    """File a conversation verbatim, make it findable, learn what it says, and sum it up.

    Doing it twice, or at once in two places, leaves the same palace. Killed in between, the
    drawers that were filed are mined by the next run, or by the periodic task.
    """
    filed = file_transcript(palace, transcript)
    if filed.room is None:
        return filed, Mined()
    mined = mine_room(filed.room)
    learn_room(filed.room)
    write_episodes(palace, [filed.room])
    return filed, mined


@in_its_palace
def mine_many(palace: Palace, transcripts: Iterable[Transcript]) -> int:
    """`mine` for many conversations, faster than one by one. Returns the messages stored.

    The caller keeps the transcripts until it returns: they are filed many at once, and a power
    cut may take the last ones filed.
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
    """Make topics, tags, passages and postings of the room's drawers that have none yet.

    Returns at once, with nothing made, while another process is mining this room.
    """
    return mine_rooms([room])


def mine_rooms(rooms: Sequence[Room]) -> Mined:
    """`mine_room` for rooms of one palace: they share calls to the embedder and transactions."""
    if not rooms:
        return Mined()
    with open_palace(rooms[0].palace):
        return mining.mine_rooms(rooms, _learn)


def _learn(palace: Palace, found: Sequence[Found]) -> None:
    """Keep the facts that a model found while it mined, but where they are to be read otherwise."""
    for each in found:
        if not have_options(palace, each.drawers):
            write_read(palace, each.drawers, each.facts, BY_MINING, each.endpoint)

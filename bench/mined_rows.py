"""Conversations filed by the product, and mined after the example of others.

Reading and embedding each message takes most of mining. Here only the first sentences of messages
are embedded, each once; wings, topics and names are those that mining gave earlier conversations.
All rows are written by the product's own functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle

import numpy as np
from django.db import transaction
from tqdm import tqdm

from bench.synthetic_rows import MadeUp, Vectors
from language.english.stated_preferences import preference_strength
from language.transcripts import Transcript
from llm.database_writes import commit_without_waiting
from llm.embedding import embed
from palace.mining.room_placement import Landed
from palace.mining.rooms import Report, save, write_mined
from palace.models import Activity, Closet, Drawer, Entity, Mention, Palace, Room, Wing
from palace.storage import file_transcripts
from palace.storage.indexing import postings
from palace.storage.indexing.spaces import active_space, model_of

# Messages in one transaction.
BATCH = 4000
# Messages of the same first sentence then have a cosine of about .8.
NOISE = 0.7


def mine_alike(palace: Palace, transcripts: Sequence[Transcript], *, seed: int = 1) -> None:
    """File and index these, after conversations that the palace has mined."""
    writer = _Writer(palace, transcripts, seed)
    with tqdm(total=len(transcripts), desc=f"{palace.owner}", leave=False, disable=None) as bar:
        for group in _groups(transcripts):
            writer.write(group)
            bar.update(len(group))
    postings.compact(palace)


def _groups(transcripts: Iterable[Transcript]) -> Iterator[list[Transcript]]:
    group: list[Transcript] = []
    for transcript in transcripts:
        group.append(transcript)
        if sum(len(each.turns) for each in group) >= BATCH:
            yield group
            group = []
    if group:
        yield group


class _Writer:
    def __init__(self, palace: Palace, transcripts: Iterable[Transcript], seed: int) -> None:
        self._palace, self._space = palace, active_space()
        self._draw = np.random.default_rng(seed)
        texts = {_first_sentence(turn.text) for each in transcripts for turn in each.turns}
        sentences = sorted(texts)
        self._rows = {sentence: row for row, sentence in enumerate(sentences)}
        self._vectors = embed(sentences, model_of(self._space), owner_id=palace.owner_id)
        mined = Room.objects.within(palace).exclude(wing__number=Wing.UNSORTED)
        # Rooms without a closet are not mined yet.
        mined = mined.filter(closets__isnull=False).distinct().order_by("number")
        self._examples = cycle(mined.select_related("wing").prefetch_related("closets"))
        self._entities = {each.name: each.pk for each in Entity.objects.filter(palace=palace)}
        self._letters = {
            name: letter
            for tags in Drawer.objects.within(palace).values_list("tags", flat=True)
            for letter, names in tags.items()
            for name in names
        }

    @transaction.atomic
    def write(self, transcripts: Sequence[Transcript]) -> None:
        commit_without_waiting()
        self._palace.lock()
        rooms = [one.room for one in file_transcripts(self._palace, transcripts) if one.room]
        closets = self._place(rooms)
        drawers: list[Drawer] = []
        reports = []
        for room in rooms:
            here = list(Drawer.objects.within(self._palace).filter(room=room).order_by("position"))
            topics = closets[room.pk]
            for place, drawer in enumerate(here):
                drawer.closet = topics[place * len(topics) // len(here)]
                drawer.tags = self._tags(drawer.text)
                drawer.preference = preference_strength(drawer.text, drawer.role)
            drawers += here
            reports.append(_reported(room, len(here), len(topics)))
        texts = [drawer.text for drawer in drawers]
        embedded = MadeUp(self._space, texts, self._near(texts))
        write_mined(self._palace, drawers, embedded, drawers)
        self._mention(drawers)
        Room.objects.within(self._palace).filter(pk__in=[r.pk for r in rooms]).mark_episode_due()
        save(reports)

    def _place(self, rooms: Sequence[Room]) -> dict[int, list[Closet]]:
        """Give each room the wing, title and topics of an example; the topics by room."""
        missing = []
        for room, example in zip(rooms, self._examples, strict=False):
            room.wing, room.title = example.wing, example.title
            missing += [
                Closet(palace=self._palace, room=room, slug=topic.slug, title=topic.title)
                for topic in example.closets.all()
            ]
        Room.objects.bulk_update(rooms, ["wing", "title"], batch_size=200)
        closets: dict[int, list[Closet]] = {}
        for closet in Closet.objects.bulk_create(missing):
            closets.setdefault(closet.room_id, []).append(closet)
        return closets

    def _tags(self, text: str) -> dict[str, list[str]]:
        tags: dict[str, list[str]] = {}
        for name, letter in self._letters.items():
            if name in text:
                tags.setdefault(letter, []).append(name)
        return tags

    def _near(self, texts: Sequence[str]) -> Vectors:
        """The vectors of the first sentences, with noise."""
        vectors = self._vectors[[self._rows[_first_sentence(text)] for text in texts]]
        noise = self._draw.standard_normal(vectors.shape, dtype=np.float32)
        vectors = vectors + noise * (NOISE / vectors.shape[1] ** 0.5)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def _mention(self, drawers: Iterable[Drawer]) -> None:
        Mention.objects.bulk_create(
            Mention(
                palace=self._palace,
                entity_id=entity,
                drawer=drawer,
                start=drawer.text.index(name),
                end=drawer.text.index(name) + len(name),
            )
            for drawer in drawers
            for name, entity in self._entities.items()
            if name in drawer.text
        )


def _first_sentence(text: str) -> str:
    return text.partition(".")[0]


def _reported(room: Room, drawers: int, topics: int) -> Activity:
    made = Counter(drawers=drawers, passages=drawers, topics=topics, rooms=1)
    return Report(room).add(room, Landed(made))

"""Reading windows: the extractor's answers, with what is known handed from one to the next."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol, cast

from django.contrib.postgres.aggregates import ArrayAgg

from language.english.topics.draft import Draft, draft
from language.extraction import Context, Embed, Extraction, Vectors, WingFound
from language.transcripts import Role, Turn
from llm.embedding import embed
from palace.mining.batches import Part
from palace.mining.known_entities import PalaceEntities
from palace.mining.local_extraction import extract
from palace.mining.model_extraction import extract_with_model
from palace.mining.text_vectors import Remembered
from palace.mining.windows import BEFORE
from palace.models import Drawer, EmbeddingSpace, Palace, Room, Wing
from palace.storage.indexing.spaces import model_of
from settings_app.models import settings_of


class Extractor(Protocol):
    def __call__(
        self,
        window: Sequence[Turn],
        vectors: Vectors | None,
        context: Context,
        embed: Embed,
        drafted: Draft | None = None,
    ) -> Extraction:
        """Read a window of at least one turn.

        Args:
            vectors: One row a turn (unit length); None while the embedder is down.
            embed: Texts to unit vectors, for what else needs comparing by meaning; may raise
                `llm.errors.EmbedderUnavailable`.
            drafted: The window's draft with these vectors, where it was made already.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """Windows of drawers, each with what the extractor found in it."""

    windows: tuple[tuple[list[Drawer], Extraction], ...]


@dataclass(frozen=True, slots=True)
class _Window:
    """A window that is still to be read, with all that can be told of it by itself."""

    drawers: list[Drawer]
    turns: list[Turn]
    vectors: Vectors | None
    draft: Draft


class WindowReader:
    """Reads rooms of one palace, one after the other. Nothing is written.

    What it found in one window is known when it reads the next, as if it had been written.

    Attributes:
        endpoint: The model that reads; None where local rules do.
        note: Why the model that was chosen cannot be asked; empty otherwise.
    """

    def __init__(self, palace: Palace, space: EmbeddingSpace) -> None:
        owner = palace.owner_id
        chosen = settings_of(owner).chat_model()
        self.endpoint, self.note = chosen.endpoint, chosen.note
        endpoint = self.endpoint
        self._extract: Extractor = (
            partial(extract_with_model, endpoint=endpoint, owner_id=owner) if endpoint else extract
        )
        self._embed = Remembered(partial(embed, model=model_of(space), owner_id=owner))
        self._wings = _known_wings(palace)
        self._entities = PalaceEntities(palace)

    def read(self, parts: Sequence[Part], vectors: Vectors | None) -> list[Reading]:
        """Read the parts' windows in order; one reading a part.

        Args:
            vectors: One row a drawer, all parts in order; None while the embedder is down.
        """
        contexts = _contexts([(part.room, part.windows[0][0]) for part in parts])
        drafted = list(_drafted(parts, contexts, vectors))
        drafts = [window.draft for ahead in drafted for window in ahead]
        if vectors is not None:
            self._embed.look_ahead(chain.from_iterable(draft.texts() for draft in drafts))
        self._entities.look_up(set().union(*(draft.named.names() for draft in drafts)))
        return [self._read(each, ahead) for each, ahead in zip(contexts, drafted, strict=True)]

    def _read(self, context: Context, windows: Sequence[_Window]) -> Reading:
        found: list[tuple[list[Drawer], Extraction]] = []
        for window in windows:
            known = dataclasses.replace(context, wings=self._wings, entities=self._entities)
            extraction = self._extract(
                window.turns, window.vectors, known, self._embed, window.draft
            )
            found.append((window.drawers, extraction))
            self._learn(extraction)
            context = dataclasses.replace(
                context,
                before=(*context.before, *window.turns)[-BEFORE:],
                topic=extraction.topics[-1].title,
            )
        return Reading(tuple(found))

    def _learn(self, extraction: Extraction) -> None:
        if extraction.wing.name not in {wing.name for wing in self._wings}:
            self._wings = (*self._wings, extraction.wing)
        self._entities.learn(extraction.entities)


def _drafted(
    parts: Sequence[Part], contexts: Sequence[Context], vectors: Vectors | None
) -> Iterator[list[_Window]]:
    first = 0
    for part, context in zip(parts, contexts, strict=True):
        windows = []
        for drawers in part.windows:
            rows = None if vectors is None else vectors[first : first + len(drawers)]
            first += len(drawers)
            turns = [_turn(drawer) for drawer in drawers]
            windows.append(_Window(drawers, turns, rows, draft(turns, rows, context)))
        yield windows


def _turn(drawer: Drawer) -> Turn:
    role = cast(Role, drawer.role)  # Filing stores no other.
    return Turn(drawer.external_id, role, drawer.text, drawer.said_at, drawer.speaker)


def _contexts(beginnings: Sequence[tuple[Room, Drawer]]) -> list[Context]:
    """What conversations themselves say about windows of these rooms that begin so."""
    speakers = _speakers([room for room, _ in beginnings])
    contexts = []
    for room, first in beginnings:
        earlier = _earlier(room, first) if first.position > 0 else []
        topic = earlier[-1].closet if earlier else None
        contexts.append(
            Context(
                title=room.title,
                agent=room.agent,
                speakers=tuple(speakers[room.source, room.external_id]),
                before=tuple(_turn(drawer) for drawer in earlier),
                topic=topic.title if topic else "",
            )
        )
    return contexts


def _earlier(room: Room, first: Drawer) -> list[Drawer]:
    before = Drawer.objects.kept().filter(
        palace=room.palace_id,
        source=room.source,
        conversation=room.external_id,
        position__lt=first.position,
    )
    return list(before.select_related("closet").order_by("-position", "-pk")[:BEFORE])[::-1]


def _speakers(rooms: Sequence[Room]) -> Mapping[tuple[str, str], list[str]]:
    """Who speaks in each conversation that the rooms are of, by source and id."""
    named = Drawer.objects.kept().filter(
        palace=rooms[0].palace_id,
        source__in={room.source for room in rooms},
        conversation__in={room.external_id for room in rooms},
    )
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    rows = named.exclude(speaker="").order_by("speaker")
    for source, conversation, speaker in rows.values_list(
        "source", "conversation", "speaker"
    ).distinct():
        found[source, conversation].append(speaker)
    return found


def _known_wings(palace: Palace) -> tuple[WingFound, ...]:
    wings = Wing.objects.within(palace).exclude(number=Wing.UNSORTED)
    rows = wings.annotate(slugs=ArrayAgg("aliases__slug", default=[])).order_by("number")
    return tuple(
        WingFound(kind, name, tuple(slug for slug in slugs if slug))
        for kind, name, slugs in rows.values_list("kind", "name", "slugs")
    )

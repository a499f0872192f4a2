"""Reading windows: the extractor's answers, with what is known handed from one to the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from django.contrib.postgres.aggregates import ArrayAgg

from llm.embedding import embed
from palace.indexing.spaces import model_of
from palace.mining.extraction.base import (
    Context,
    Embed,
    Extraction,
    Extractor,
    Vectors,
    WingFound,
)
from palace.mining.extraction.local import extract
from palace.mining.extraction.model import extract_with_model
from palace.mining.known import PalaceEntities
from palace.mining.windows import BEFORE
from palace.models import Drawer, EmbeddingSpace, Palace, Room, Wing
from palace.transcripts import Role, Turn
from settings_app.models import settings_of


@dataclass(frozen=True, slots=True)
class Reading:
    """Windows of drawers, each with what the extractor found in it."""

    windows: tuple[tuple[list[Drawer], Extraction], ...]


class Reader:
    """Reads rooms of one palace, one after the other. Nothing is written.

    What it found in one window is known when it reads the next, as if it had been written.

    Attributes:
        note: Why the model that was chosen cannot be asked; empty otherwise.
    """

    def __init__(self, palace: Palace, space: EmbeddingSpace) -> None:
        owner = palace.owner_id
        chosen = settings_of(owner).chat_model()
        endpoint, self.note = chosen.endpoint, chosen.note
        self._extract: Extractor = (
            partial(extract_with_model, endpoint=endpoint, owner_id=owner) if endpoint else extract
        )
        self._embed: Embed = partial(embed, model=model_of(space), owner_id=owner)
        self._wings = _known_wings(palace)
        self._entities = PalaceEntities(palace)

    def read(self, room: Room, windows: Sequence[list[Drawer]], vectors: Vectors | None) -> Reading:
        """Read a room's windows in order.

        Args:
            vectors: One row a drawer, all windows in order; None while the embedder is down.
        """
        context = _context(room, windows[0][0])
        found: list[tuple[list[Drawer], Extraction]] = []
        first = 0
        for window in windows:
            rows = None if vectors is None else vectors[first : first + len(window)]
            first += len(window)
            turns = [_turn(drawer) for drawer in window]
            known = dataclasses.replace(context, wings=self._wings, entities=self._entities)
            extraction = self._extract(turns, rows, known, self._embed)
            found.append((window, extraction))
            self._learn(extraction)
            context = dataclasses.replace(
                context,
                before=(*context.before, *turns)[-BEFORE:],
                topic=extraction.topics[-1].title,
            )
        return Reading(tuple(found))

    def _learn(self, extraction: Extraction) -> None:
        if extraction.wing.name not in {wing.name for wing in self._wings}:
            self._wings = (*self._wings, extraction.wing)
        self._entities.learn(extraction.entities)


def _turn(drawer: Drawer) -> Turn:
    role = cast(Role, drawer.role)  # Filing stores no other.
    return Turn(drawer.external_id, role, drawer.text, drawer.said_at, drawer.speaker)


def _context(room: Room, first: Drawer) -> Context:
    """What the conversation itself says about a window that begins with `first`."""
    conversation = Drawer.objects.kept().filter(
        palace=room.palace_id, source=room.source, conversation=room.external_id
    )
    earlier: list[Drawer] = []
    if first.position > 0:
        before = conversation.filter(position__lt=first.position).order_by("-position", "-pk")
        earlier = list(before.select_related("closet")[:BEFORE])[::-1]
    speakers = conversation.exclude(speaker="").order_by("speaker")
    topic = earlier[-1].closet if earlier else None
    return Context(
        title=room.title,
        agent=room.agent,
        speakers=tuple(speakers.values_list("speaker", flat=True).distinct()),
        before=tuple(_turn(drawer) for drawer in earlier),
        topic=topic.title if topic else "",
    )


def _known_wings(palace: Palace) -> tuple[WingFound, ...]:
    wings = Wing.objects.within(palace).exclude(number=Wing.UNSORTED)
    rows = wings.annotate(slugs=ArrayAgg("aliases__slug", default=[])).order_by("number")
    return tuple(
        WingFound(kind, name, tuple(slug for slug in slugs if slug))
        for kind, name, slugs in rows.values_list("kind", "name", "slugs")
    )

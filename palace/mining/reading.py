"""Reading windows: the extractor's answers, with what is known handed from one to the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from django.utils.text import slugify

from llm.embedding import embed
from llm.providers import deployment_endpoint
from palace.indexing.spaces import active_space, model_of
from palace.mining.extraction.base import (
    Context,
    Embed,
    Extraction,
    Extractor,
    KnownEntity,
    Vectors,
    WingFound,
)
from palace.mining.extraction.local import extract
from palace.mining.extraction.model import extract_with_model
from palace.mining.windows import BEFORE
from palace.models import Drawer, Entity, Palace, Room, Wing
from palace.transcripts import Role, Turn


@dataclass(frozen=True, slots=True)
class Reading:
    """Windows of drawers, each with what the extractor found in it."""

    windows: tuple[tuple[list[Drawer], Extraction], ...]


def read(room: Room, windows: Sequence[list[Drawer]], vectors: Vectors | None) -> Reading:
    """Read windows in order. Nothing is written.

    Args:
        vectors: One row a drawer, all windows in order; None while the embedder is down.
    """
    extractor, embed_texts = _extractor(room.palace), _embedder(room.palace)
    context = _context(room, windows[0][0])
    found: list[tuple[list[Drawer], Extraction]] = []
    first = 0
    for window in windows:
        rows = None if vectors is None else vectors[first : first + len(window)]
        first += len(window)
        turns = [_turn(drawer) for drawer in window]
        extraction = extractor(turns, rows, context, embed_texts)
        found.append((window, extraction))
        context = _carry_on(context, turns, extraction)
    return Reading(tuple(found))


def _extractor(palace: Palace) -> Extractor:
    endpoint = deployment_endpoint()
    if endpoint is None:
        return extract
    return partial(extract_with_model, endpoint=endpoint, owner_id=palace.owner_id)


def _embedder(palace: Palace) -> Embed:
    return partial(embed, model=model_of(active_space()), owner_id=palace.owner_id)


def _turn(drawer: Drawer) -> Turn:
    role = cast(Role, drawer.role)  # Filing stores no other.
    return Turn(drawer.external_id, role, drawer.text, drawer.said_at, drawer.speaker)


def _context(room: Room, first: Drawer) -> Context:
    conversation = Drawer.objects.filter(
        palace=room.palace_id, source=room.source, conversation=room.external_id
    )
    before = conversation.filter(position__lt=first.position).order_by("-position", "-pk")[:BEFORE]
    earlier = list(before.select_related("closet"))[::-1]
    speakers = (
        conversation.exclude(speaker="").order_by("speaker").values_list("speaker", flat=True)
    )
    topic = earlier[-1].closet if earlier else None
    return Context(
        title=room.title,
        agent=room.agent,
        speakers=tuple(speakers.distinct()),
        before=tuple(_turn(drawer) for drawer in earlier),
        topic=topic.title if topic else "",
        wings=_known_wings(room.palace),
        entities=_known_entities(room.palace),
    )


def _known_wings(palace: Palace) -> tuple[WingFound, ...]:
    wings = Wing.objects.filter(palace=palace).exclude(number=Wing.UNSORTED)
    return tuple(
        WingFound(wing.kind, wing.name, tuple(alias.slug for alias in wing.aliases.all()))
        for wing in wings.prefetch_related("aliases")
    )


def _known_entities(palace: Palace) -> dict[str, KnownEntity]:
    rows = Entity.objects.filter(palace=palace).values_list("slug", "kind", "name", "aliases")
    return {slug: KnownEntity(kind, name, tuple(aliases)) for slug, kind, name, aliases in rows}


def _carry_on(context: Context, turns: list[Turn], extraction: Extraction) -> Context:
    """The next window's context, as it would be had this one been written already."""
    entities = dict(context.entities)
    for entity in extraction.entities:
        known = KnownEntity(entity.kind, entity.name, entity.aliases)
        entities.setdefault(slugify(entity.name, allow_unicode=True), known)
    return dataclasses.replace(
        context,
        before=(*context.before, *turns)[-BEFORE:],
        topic=extraction.topics[-1].title if extraction.topics else context.topic,
        entities=entities,
    )

"""Window reader: runs the extractor on windows in order, passing known wings and entities on.

Also finds the subjects that several of a palace's conversations are about.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol

import numpy as np
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, OuterRef

from language.english.topics import Draft, draft
from language.english.topics.name_kinds import listed_kind
from language.extraction import (
    Context,
    Embed,
    EntityFound,
    Extraction,
    KnownEntity,
    Vectors,
    WingFound,
    named_among,
)
from language.slugs import slug_of
from language.transcripts import Turn
from llm import sent
from llm.embedding import embed
from llm.errors import LLMError
from palace.mining.batches import BEFORE, Part
from palace.mining.model_extraction import extract, extract_with_model
from palace.models import Drawer, EmbeddingSpace, Entity, Mention, Palace, Room, Wing, WingAlias
from palace.storage import embed_passages
from palace.storage.indexing.spaces import model_of
from settings_app.models import ModelUse, settings_of

# A conversation is about what so many of its messages name.
LEAST_NAMING = 2
# With the one that is read, a subject is in three conversations.
LEAST_ROOMS = 2
# Places and employers are named whatever the subject is.
KINDS = (
    Entity.Kind.PERSON,
    Entity.Kind.PET,
    Entity.Kind.PROJECT,
    Entity.Kind.EVENT,
    Entity.Kind.ITEM,
)


# What is known about whom messages name, by key; for a model that also reads facts.
Memories = Callable[[Palace, Sequence[Turn]], Mapping[int, str]]


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
            vectors: One row per turn (unit length); None if the embedder is unavailable.
            embed: Embeds further texts as unit vectors; may raise
                `llm.errors.EmbedderUnavailable`.
            drafted: The window's draft with these vectors, if already made.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """Windows of drawers, each with its extraction."""

    windows: tuple[tuple[list[Drawer], Extraction], ...]


@dataclass(frozen=True, slots=True)
class _Window:
    """A window to read, with its draft, which depends on the window alone."""

    drawers: list[Drawer]
    turns: list[Turn]
    vectors: Vectors | None
    draft: Draft


class WindowReader:
    """Reads rooms of one palace in order, without writing.

    The findings of one window are known to the next, as if they had been written.

    Attributes:
        endpoint: The model used; None for local rules.
        note: Why the chosen model is unavailable; empty otherwise.
    """

    def __init__(self, palace: Palace, space: EmbeddingSpace, memories: Memories) -> None:
        owner = palace.owner_id
        choices = settings_of(owner)
        chosen = choices.chat_model(ModelUse.FILING)
        self.endpoint, self.note = chosen.endpoint, chosen.note
        self._extract: Extractor = extract
        self._memories: Callable[[Sequence[Turn]], Mapping[int, str]] | None = None
        if chosen.endpoint:
            if choices.allows(ModelUse.FACTS):
                self._memories = partial(memories, palace)
            self._extract = partial(
                extract_with_model,
                endpoint=chosen.endpoint,
                owner_id=owner,
                with_facts=choices.allows(ModelUse.FACTS),
            )
        self._embed = CachedEmbed(
            partial(embed, model=model_of(space), owner_id=owner),
            partial(embed_passages, palace=palace, space=space),
        )
        self._wings = _known_wings(palace)
        self._entities = PalaceEntities(palace)
        self._subjects = Subjects(palace)

    def read(self, parts: Sequence[Part], vectors: Vectors | None) -> list[Reading]:
        """Read the parts' windows in order; one reading per part.

        Args:
            vectors: One row per drawer, all parts in order; None if the embedder is unavailable.
        """
        beginnings = _contexts([(part.room, part.windows[0][0]) for part in parts])
        drafted = list(_drafted(parts, [context for context, _ in beginnings], vectors))
        drafts = [window.draft for ahead in drafted for window in ahead]
        if vectors is not None:
            self._embed.look_ahead(chain.from_iterable(draft.texts() for draft in drafts))
        self._entities.look_up(set().union(*(draft.named.names() for draft in drafts)))
        if any(part.windows[0][0].position == 0 for part in parts):
            self._subjects.look_up(
                set().union(*(ahead[0].draft.named.names() for ahead in drafted))
            )
        return [
            self._read(part.room, *each, ahead)
            for part, each, ahead in zip(parts, beginnings, drafted, strict=True)
        ]

    def _read(
        self, room: Room, context: Context, before: Sequence[Drawer], windows: Sequence[_Window]
    ) -> Reading:
        found: list[tuple[list[Drawer], Extraction]] = []
        returning = self._subjects.returning(room.pk, windows[0].draft.named.names())
        context = dataclasses.replace(context, returning=returning)
        for window in windows:
            memories = self._memories(window.turns) if self._memories else {}
            known = dataclasses.replace(
                context,
                wings=self._wings,
                entities=self._entities,
                memories=tuple(memories.values()),
            )
            shown = sent.references("drawer", [d.pk for d in (*before, *window.drawers)])
            with sent.made_of([*shown, *sent.references("fact", memories)]):
                extraction = self._extract(
                    window.turns, window.vectors, known, self._embed, window.draft
                )
            before = (*before, *window.drawers)[-BEFORE:]
            found.append((window.drawers, extraction))
            self._learn(room, extraction)
            context = dataclasses.replace(
                context,
                before=(*context.before, *window.turns)[-BEFORE:],
                topic=extraction.topics[-1].title,
            )
        return Reading(tuple(found))

    def _learn(self, room: Room, extraction: Extraction) -> None:
        is_new = extraction.wing.name not in {wing.name for wing in self._wings}
        if is_new and not extraction.wing.is_area:
            self._wings = (*self._wings, extraction.wing)
        self._entities.learn(extraction.entities)
        self._subjects.learn(room.pk, extraction.entities)


def _drafted(
    parts: Sequence[Part], contexts: Sequence[Context], vectors: Vectors | None
) -> Iterator[list[_Window]]:
    first = 0
    for part, context in zip(parts, contexts, strict=True):
        windows: list[_Window] = []
        for drawers in part.windows:
            rows = None if vectors is None else vectors[first : first + len(drawers)]
            first += len(drawers)
            turns = [drawer.as_turn() for drawer in drawers]
            windows.append(_Window(drawers, turns, rows, draft(turns, rows, context)))
        begin, *later = windows
        whole = dataclasses.replace(begin.draft, later=[window.draft for window in later])
        yield [dataclasses.replace(begin, draft=whole), *later]


def _contexts(
    beginnings: Sequence[tuple[Room, Drawer]],
) -> list[tuple[Context, Sequence[Drawer]]]:
    """Contexts from the conversations, for windows of these rooms with these first drawers.

    Each with the drawers before the first one that it quotes.
    """
    speakers = _speakers([room for room, _ in beginnings])
    contexts: list[tuple[Context, Sequence[Drawer]]] = []
    for room, first in beginnings:
        earlier = _earlier(room, first) if first.position > 0 else []
        topic = earlier[-1].closet if earlier else None
        context = Context(
            title=room.title,
            agent=room.agent,
            speakers=tuple(speakers[room.source, room.external_id]),
            before=tuple(drawer.as_turn() for drawer in earlier),
            topic=topic.title if topic else "",
        )
        contexts.append((context, earlier))
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
    """The speakers of each room's conversation, by source and id."""
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
    aliases = WingAlias.objects.filter(palace=palace, wing=OuterRef("pk")).order_by("pk")
    rows = wings.annotate(slugs=ArraySubquery(aliases.values("slug"))).order_by("number")
    return tuple(
        WingFound(kind, name, tuple(slugs))
        for kind, name, slugs in rows.values_list("kind", "name", "slugs")
    )


class CachedEmbed:
    """An `Embed` with a cache: an embedder call costs as much as the dozen words of a window."""

    def __init__(self, embed: Embed, embed_ahead: Embed) -> None:
        self._embed, self._embed_ahead = embed, embed_ahead
        self._vectors: dict[str, Vectors] = {}

    def look_ahead(self, texts: Iterable[str]) -> None:
        """Embed phrases of messages; an error is raised when they are used, not here."""
        try:
            self._learn(texts, self._embed_ahead)
        except LLMError:
            return

    def __call__(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return self._embed(texts)
        self._learn(texts, self._embed)
        return np.stack([self._vectors[text] for text in texts])

    def _learn(self, texts: Iterable[str], embed: Embed) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, embed(new), strict=True)


class PalaceEntities:
    """The palace's entities, and those found since that are not written yet.

    A palace has thousands, but a window names only a few: these are loaded, each name once.
    """

    def __init__(self, palace: Palace) -> None:
        self._entities = Entity.objects.filter(palace=palace).order_by("pk")
        self._looked_up: set[str] = set()
        self._names: dict[str, KnownEntity] = {}
        # Few entities have aliases, and any of these may occur in a window.
        aliased = self._read(self._entities.exclude(aliases=[]))
        self._aliases = {alias.casefold(): entity for entity in aliased for alias in entity.aliases}

    def named(self, names: Collection[str]) -> Mapping[str, KnownEntity]:
        """See `KnownEntities`. An entity's own name takes precedence over another's alias."""
        self.look_up(names)
        # A ChainMap avoids merging the dictionaries for each of hundreds of windows.
        return named_among(ChainMap(self._names, self._aliases), names)

    def look_up(self, names: Collection[str]) -> None:
        """Load the entities with one of these names."""
        slugs = {slug_of(name) for name in names} - self._looked_up
        if slugs:
            self._looked_up |= slugs
            # Filter by all kinds, because the index begins with the kind.
            rows = self._entities.filter(kind__in=Entity.Kind.values, slug__in=slugs)
            # Of a person and a pet with the same name, the name stands for the older one.
            for entity in self._read(rows):
                self._names.setdefault(entity.name.casefold(), entity)

    def learn(self, found: Iterable[EntityFound]) -> None:
        """Add found entities; existing names keep their entity."""
        for entity in found:
            known = KnownEntity(entity.kind, entity.name, entity.aliases)
            self._names.setdefault(entity.name.casefold(), known)
            for alias in entity.aliases:
                self._aliases.setdefault(alias.casefold(), known)

    @staticmethod
    def _read(rows: Iterable[Entity]) -> list[KnownEntity]:
        return [KnownEntity(row.kind, row.name, tuple(row.aliases)) for row in rows]


class Subjects:
    """Entities with the rooms that are about them, also those found since and not written yet."""

    def __init__(self, palace: Palace) -> None:
        self._palace = palace
        self._looked_up: set[str] = set()
        self._entities: dict[str, KnownEntity] = {}
        self._rooms: defaultdict[str, set[int]] = defaultdict(set)

    def look_up(self, names: Collection[str]) -> None:
        """Load the rooms that name entities with one of these names again and again."""
        slugs = {slug_of(name) for name in names} - self._looked_up
        self._looked_up |= slugs
        rows = list(Entity.objects.filter(palace=self._palace, kind__in=KINDS, slug__in=slugs))
        by_key = {row.pk: row for row in rows if listed_kind(row.name) is None}
        if not by_key:
            return
        for entity in by_key.values():
            known = KnownEntity(entity.kind, entity.name, tuple(entity.aliases))
            self._entities.setdefault(entity.slug, known)
        named = Mention.objects.filter(
            palace=self._palace, entity__in=by_key, drawer__trashed_at=None
        )
        rooms = (
            named.order_by()
            .values("entity", "drawer__room")
            .annotate(drawers=Count("drawer", distinct=True))
        )
        for row in rooms.filter(drawers__gte=LEAST_NAMING):
            self._rooms[by_key[row["entity"]].slug].add(row["drawer__room"])

    def learn(self, room: int, found: Iterable[EntityFound]) -> None:
        """Add what a window of a room names."""
        for entity in found:
            turns = {span.turn for span in entity.spans}
            is_subject = entity.kind in KINDS and listed_kind(entity.name) is None
            if is_subject and len(turns) >= LEAST_NAMING:
                slug = slug_of(entity.name)
                known = KnownEntity(entity.kind, entity.name, entity.aliases)
                self._entities.setdefault(slug, known)
                self._rooms[slug].add(room)

    def returning(self, room: int, names: Collection[str]) -> tuple[KnownEntity, ...]:
        """Those of these names that at least two other rooms are about."""
        slugs = sorted({slug_of(name) for name in names} & self._entities.keys())
        return tuple(
            self._entities[slug] for slug in slugs if len(self._rooms[slug] - {room}) >= LEAST_ROOMS
        )

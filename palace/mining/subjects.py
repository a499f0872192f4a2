"""Subjects: who and what a palace's conversations return to, by how often each names them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from django.db.models import Count

from language.english.topics.name_kinds import listed_kind
from language.extraction import EntityFound, KnownEntity
from language.slugs import slug_of
from palace.models import Entity, Mention, Palace

# A conversation is about what so many of its messages name.
LEAST_NAMING = 2
# With the one that is read, a subject is in three conversations.
LEAST_ROOMS = 2
# Places and employers are named everywhere, whatever is spoken of.
KINDS = (Entity.Kind.PERSON, Entity.Kind.PROJECT, Entity.Kind.EVENT, Entity.Kind.ITEM)


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

"""Linking: what an extractor found, into wings, closets, entities and mentions that exist once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Max

from palace.mining.extraction.base import EntityFound, Extraction, WingFound
from palace.mining.reading import Reading
from palace.mining.slugs import slug_of
from palace.models import Closet, Entity, Mention, Palace, Room, Wing, WingAlias
from palace.storable import LABEL_LENGTH


@dataclass(slots=True)
class Landed:
    """What was written: counts by kind, and what was degraded, in sentences."""

    made: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


class Linker:
    """Writes extractions for one room, inside a transaction that holds the palace."""

    def __init__(self, room: Room) -> None:
        self.palace: Palace = room.palace
        self.landed = Landed()
        # As it is now: another run may have sorted it since.
        self.room = Room.objects.select_related("wing").get(pk=room.pk)

    def link(self, reading: Reading) -> Landed:
        self._sort_room(reading.windows[0][1])
        self._file_topics(reading)
        for window, extraction in reading.windows:
            for drawer, tags, preference in zip(
                window, extraction.tags, extraction.preferences, strict=True
            ):
                drawer.tags = {letter: list(names) for letter, names in tags.items() if names}
                drawer.preference = preference
            self.landed.notes += extraction.notes
        self._mention(reading)
        return self.landed

    def _sort_room(self, extraction: Extraction) -> None:
        """Give an unsorted room its wing and title. A sorted one stays where it is."""
        if self.room.wing.number != Wing.UNSORTED:
            return
        self.room.wing = wing_for(self.palace, extraction.wing)
        self.room.title = extraction.title[:LABEL_LENGTH] or self.room.title
        self.room.save(update_fields=["wing", "title"])
        self.landed.made["rooms"] += 1

    def _file_topics(self, reading: Reading) -> None:
        """Give each drawer the closet of its topic."""
        titles: dict[str, str] = {}
        for _, extraction in reading.windows:
            for topic in extraction.topics:
                titles.setdefault(slug_of(topic.title), topic.title)
        closets = self._closets(titles)
        for window, extraction in reading.windows:
            for topic in extraction.topics:
                for drawer in window[topic.first : topic.last + 1]:
                    drawer.closet = closets[slug_of(topic.title)]

    def _closets(self, titles: Mapping[str, str]) -> Mapping[str, Closet]:
        """The room's closets by slug, those that are missing made."""
        present = {
            closet.slug: closet
            for closet in Closet.objects.filter(
                palace=self.palace, room=self.room, slug__in=list(titles)
            )
        }
        missing = [
            Closet(palace=self.palace, room=self.room, slug=slug, title=title[:LABEL_LENGTH])
            for slug, title in titles.items()
            if slug not in present
        ]
        self.landed.made["topics"] += len(missing)
        made = Closet.objects.bulk_create(missing) if missing else []
        return present | {closet.slug: closet for closet in made}

    def _mention(self, reading: Reading) -> None:
        found = [e for _, extraction in reading.windows for e in extraction.entities]
        if not found:
            return
        entities = entities_for(self.palace, found, self.landed.made)
        mentions = {
            (drawer.pk, span.start, entity.pk): Mention(
                palace=self.palace, entity=entity, drawer=drawer, start=span.start, end=span.end
            )
            for window, extraction in reading.windows
            for found in extraction.entities
            for entity in [entities[found.kind, slug_of(found.name)]]
            for span in found.spans
            for drawer in [window[span.turn]]
        }
        Mention.objects.bulk_create(mentions.values(), ignore_conflicts=True)
        self.landed.made["mentions"] += len(mentions)


def wing_for(palace: Palace, found: WingFound) -> Wing:
    """The wing of that name or alias, made if there is none; call it holding the palace."""
    slugs = list(dict.fromkeys(map(slug_of, (found.name, *found.aliases))))
    wings = Wing.objects.filter(palace=palace)
    wing = wings.filter(slug=slugs[0]).first()
    wing = wing or wings.filter(aliases__slug__in=slugs).order_by("number").first()
    if wing is None:
        highest = wings.aggregate(Max("number"))["number__max"] or 0
        gone = Palace.objects.values_list("highest_wing", flat=True).get(pk=palace.pk)
        wing = Wing.objects.create(
            palace=palace,
            number=max(highest, gone) + 1,
            slug=slugs[0],
            name=found.name[:LABEL_LENGTH],
            kind=found.kind,
        )
    known = WingAlias.objects.filter(palace=palace, slug__in=slugs)
    taken = set(known.values_list("slug", flat=True))
    missing = [
        WingAlias(palace=palace, wing=wing, slug=slug) for slug in slugs if slug not in taken
    ]
    if missing:
        WingAlias.objects.bulk_create(missing)
    return wing


def entities_for(
    palace: Palace, found: Sequence[EntityFound], made: Counter[str]
) -> Mapping[tuple[str, str], Entity]:
    """The entity of each kind and slug found, made if there is none."""
    wanted = {(entity.kind, slug_of(entity.name)): entity for entity in found}
    slugs = [slug for _, slug in wanted]

    def present() -> dict[tuple[str, str], Entity]:
        rows = Entity.objects.filter(palace=palace, slug__in=slugs)
        return {(entity.kind, entity.slug): entity for entity in rows}

    known = present()
    missing = [key for key in wanted if key not in known]
    if not missing:
        return known
    Entity.objects.bulk_create(
        [
            Entity(
                palace=palace,
                kind=kind,
                slug=slug,
                name=wanted[kind, slug].name[:LABEL_LENGTH],
                aliases=[alias[:LABEL_LENGTH] for alias in wanted[kind, slug].aliases],
            )
            for kind, slug in missing
        ],
        ignore_conflicts=True,
    )
    made["entities"] += len(missing)
    return present()

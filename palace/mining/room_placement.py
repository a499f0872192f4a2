"""Put rooms into wings: extractions become wings, closets, entities and mentions, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import connection

from language.english.topics.wings import EVERYDAY
from language.extraction import EntityFound, WingFound
from language.slugs import slug_of
from language.storable import LABEL_LENGTH
from llm.secrets_in_text import secret_tags
from palace.mining.window_reader import Reading
from palace.models import Closet, Entity, Palace, Room, Wing, WingAlias, opens_palace
from palace.storage import emptied_again, known_wing, wing_for

EntityKey = tuple[str, str]  # Kind and slug.
# Conversations that an area of life has a wing of by rules alone: fewer wait in the catch-all wing.
ENOUGH_FOR_A_WING = 3


@dataclass(slots=True)
class Landed:
    """Rows written, by kind, and sentences on what was degraded."""

    made: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Linked:
    """A room, its extractions, and the rows written.

    Attributes:
        room: With its wing and title from mining.
    """

    room: Room
    reading: Reading
    landed: Landed = field(default_factory=Landed)


def link(palace: Palace, readings: Mapping[int, Reading]) -> list[Linked]:
    """Write the extractions of rooms, by key, in a transaction that locks the palace.

    Each kind of row is written in one statement for all rooms. Closets, tags and preferences are
    set on the drawers, but not saved.
    """
    # Read again, because another run may have sorted them since.
    rooms = Room.objects.within(palace).select_related("wing").in_bulk(list(readings))
    linked = [Linked(rooms[key], reading) for key, reading in readings.items()]
    _sort_rooms(palace, linked)
    _file_topics(palace, linked)
    for one in linked:
        _tell_drawers(one)
    _mention(palace, linked)
    return linked


def _sort_rooms(palace: Palace, linked: Sequence[Linked]) -> None:
    """Set wings, areas and titles of unsorted rooms; sorted rooms are unchanged."""
    unsorted = [one for one in linked if one.room.wing.number == Wing.UNSORTED]
    found = Counter(map(_wing_found, unsorted))
    places = {wing: _place(palace, wing, times) for wing, times in found.items()}
    for one in unsorted:
        extraction = one.reading.windows[0][1]
        one.room.wing, one.room.area = places[_wing_found(one)]
        one.room.title = extraction.title[:LABEL_LENGTH] or one.room.title
        one.landed.made["rooms"] += 1
    if unsorted:
        _save_places(palace, [one.room for one in unsorted])


def _wing_found(one: Linked) -> WingFound:
    return one.reading.windows[0][1].wing


def _place(palace: Palace, found: WingFound, rooms: int) -> tuple[Wing, str]:
    """The wing of so many rooms, and the area of life for whose wing they wait there, if any."""
    waits = found.is_area and known_wing(palace, found) is None
    if waits and rooms >= ENOUGH_FOR_A_WING:
        # Of many at once, moving each would take longer than the rest of their mining.
        rejected = Palace.objects.filter(pk=palace.pk, rejected_areas__contains=[found.name])
        catch_all = known_wing(palace, EVERYDAY)
        # What a person says that the catch-all wing keeps would not apply elsewhere.
        waits = rejected.exists() or (catch_all is not None and catch_all.has_rules)
    if found.name != EVERYDAY.name and not waits:
        return wing_for(palace, found), ""
    if known_wing(palace, EVERYDAY) is None:
        emptied_again(palace, slug_of(EVERYDAY.name))
    return wing_for(palace, EVERYDAY), found.name if found.is_area else ""


def _save_places(palace: Palace, rooms: Sequence[Room]) -> None:
    columns = zip(*((room.pk, room.wing_id, room.area, room.title) for room in rooms), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE palace_room r SET wing_id = n.wing, area = n.area, title = n.title
            FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[])
                AS n (id, wing, area, title)
            WHERE r.palace_id = %s AND r.id = n.id
            """,
            [*map(list, columns), palace.pk],
        )


def _file_topics(palace: Palace, linked: Sequence[Linked]) -> None:
    """Set each drawer's closet by its topic."""
    closets = _closets(palace, linked)
    for one in linked:
        for window, extraction in one.reading.windows:
            for topic in extraction.topics:
                for drawer in window[topic.first : topic.last + 1]:
                    drawer.closet = closets[one.room.pk, slug_of(topic.title)]


def _closets(palace: Palace, linked: Sequence[Linked]) -> Mapping[tuple[int, str], Closet]:
    """The rooms' closets by room and slug; missing ones are created."""
    present = {
        (closet.room_id, closet.slug): closet
        for closet in Closet.objects.within(palace).filter(room__in=[one.room for one in linked])
    }
    missing: list[Closet] = []
    for one in linked:
        titles = _titles(one.reading)
        new = [slug for slug in titles if (one.room.pk, slug) not in present]
        one.landed.made["topics"] += len(new)
        missing += [
            Closet(palace=palace, room=one.room, slug=slug, title=titles[slug][:LABEL_LENGTH])
            for slug in new
        ]
    made = Closet.objects.bulk_create(missing) if missing else []
    return present | {(closet.room_id, closet.slug): closet for closet in made}


def _titles(reading: Reading) -> Mapping[str, str]:
    titles: dict[str, str] = {}
    for _, extraction in reading.windows:
        for topic in extraction.topics:
            titles.setdefault(slug_of(topic.title), topic.title)
    return titles


def _tell_drawers(one: Linked) -> None:
    for window, extraction in one.reading.windows:
        for drawer, tags, preference in zip(
            window, extraction.tags, extraction.preferences, strict=True
        ):
            drawer.tags = {letter: list(names) for letter, names in tags.items() if names}
            drawer.tags |= secret_tags(drawer.text)
            drawer.preference = preference
        one.landed.notes += extraction.notes


def _mention(palace: Palace, linked: Sequence[Linked]) -> None:
    entities = entities_for(palace, linked)
    rows: list[tuple[int, int, int, int]] = []
    for one in linked:
        mentions = {
            (entities[found.kind, slug_of(found.name)], window[span.turn].pk, span.start): span.end
            for window, extraction in one.reading.windows
            for found in extraction.entities
            for span in found.spans
        }
        if mentions:
            one.landed.made["mentions"] += len(mentions)
        rows += [(*key, end) for key, end in mentions.items()]
    if rows:
        _add_mentions(palace, rows)


def _add_mentions(palace: Palace, rows: Collection[tuple[int, int, int, int]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO palace_mention (palace_id, entity_id, drawer_id, start, "end")
            SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::int[])
            ON CONFLICT DO NOTHING
            """,
            [palace.pk, *map(list, zip(*rows, strict=True))],
        )


@opens_palace
def put_in_project(palace: Palace, room: Room, project: str) -> None:
    """Move an unsorted room to the wing of its project, before it is mined.

    Args:
        project: A name, or the path of a folder. Folders of the same name get wings of their own.
    """
    palace.lock()
    if room.wing.number == Wing.UNSORTED:
        room.wing = _project_wing(palace, project)
        room.save(update_fields=["wing"])


def _project_wing(palace: Palace, project: str) -> Wing:
    project = project.replace("\\", "/")
    known = WingAlias.objects.filter(palace=palace, slug=slug_of(project)).select_related("wing")
    if alias := known.first():
        return alias.wing
    steps = [step for step in project.split("/") if step] or [project]
    # The path is an alias, so that its wing is found again, whatever it is called then.
    names = ["/".join(steps[-length:]) for length in range(1, len(steps) + 1)]
    free = (name for name in names if not _is_of_another_folder(palace, slug_of(name)))
    return wing_for(palace, WingFound(Wing.Kind.PROJECT, next(free, project), (project,)))


def _is_of_another_folder(palace: Palace, slug: str) -> bool:
    """Whether a wing with this name has the path of a folder among its aliases."""
    aliases = WingAlias.objects.filter(palace=palace)
    wings = aliases.filter(slug=slug).values("wing")
    return aliases.filter(wing__in=wings, slug__endswith=f"slash-{slug}").exists()


def entities_for(palace: Palace, linked: Sequence[Linked]) -> Mapping[EntityKey, int]:
    """The key of each found entity by kind and slug; missing entities are created."""
    found = [_found_in(one.reading) for one in linked]
    known = _present(palace, {slug for wanted in found for _, slug in wanted})
    missing: dict[EntityKey, EntityFound] = {}
    for one, wanted in zip(linked, found, strict=True):
        new = {
            key: entity for key, entity in wanted.items() if key not in known and key not in missing
        }
        if new:
            one.landed.made["entities"] += len(new)
        missing |= new
    if not missing:
        return known
    Entity.objects.bulk_create(
        [
            Entity(
                palace=palace,
                kind=kind,
                slug=slug,
                name=entity.name[:LABEL_LENGTH],
                aliases=[alias[:LABEL_LENGTH] for alias in entity.aliases],
            )
            for (kind, slug), entity in missing.items()
        ],
        ignore_conflicts=True,
    )
    return known | _present(palace, {slug for _, slug in missing})


def _found_in(reading: Reading) -> dict[EntityKey, EntityFound]:
    return {
        (entity.kind, slug_of(entity.name)): entity
        for _, extraction in reading.windows
        for entity in extraction.entities
    }


def _present(palace: Palace, slugs: Collection[str]) -> dict[EntityKey, int]:
    if not slugs:
        return {}
    # Filter by all kinds, because the index begins with the kind.
    rows = Entity.objects.filter(palace=palace, kind__in=Entity.Kind.values, slug__in=slugs)
    return {(kind, slug): key for kind, slug, key in rows.values_list("kind", "slug", "pk")}

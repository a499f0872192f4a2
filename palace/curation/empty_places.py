"""What a purge leaves behind: places with nothing in them, and names that came from the words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection
from django.db.models import F, Value
from django.db.models.functions import Greatest

from language.analyzer import analyze
from language.slugs import slug_of
from palace.curation.entities import forget_changes
from palace.mining.reports import summary_of
from palace.models import Activity, Closet, Drawer, Palace, Room, Wing
from palace.storage.filing.file import UNTITLED
from palace.storage.indexing import postings

UNTITLED_TOPIC = "Untitled topic"
# Of a slug made anew, so that a number fits behind it.
SLUG_STEM = 160
# What an activity says once what it was about is gone: its sentence had a name in it.
FORGOTTEN = {
    Activity.Kind.MEMORY_MINED: "Remembered a conversation that was deleted for good since.",
    Activity.Kind.WING_CHANGED: "Renamed a wing that was deleted for good since.",
    Activity.Kind.WINGS_MERGED: "Merged two wings that were deleted for good since.",
}


def remove_emptied(palace: Palace, purged: Sequence[Drawer], entities: Iterable[int]) -> None:
    """Remove the places that held `purged` and hold nothing more, and entities named nowhere.

    What is in the trash still counts. Numbers of what is gone are not given again. Call it in
    the transaction that deleted the drawers.
    """
    rooms = {drawer.room_id: drawer.room for drawer in purged}
    wings = {room.wing_id: room.wing for room in rooms.values()}
    _keep_numbers(purged)
    remove_empty_closets(palace, [each.closet_id for each in purged if each.closet_id])
    gone = _delete(palace, "room", rooms, unless="drawer")
    _raise_marks(palace, [rooms[key] for key in gone], [])
    _forget_activities(palace, "room", [rooms[key] for key in gone])
    remove_empty_wings(palace, list(wings.values()))
    _delete_unknown(palace, entities)
    for room in _told_of(palace, [room for key, room in rooms.items() if key not in gone], purged):
        texts = [drawer.text for drawer in purged if _was_said_in(room, drawer)]
        if forget_names(room, texts):
            _tell_anew(room)


def remove_empty_closets(palace: Palace, closets: Iterable[int]) -> None:
    """Remove those of the closets, by their keys, that hold nothing, in the trash either."""
    _delete(palace, "closet", closets, unless="drawer")


def remove_empty_wings(palace: Palace, wings: Sequence[Wing]) -> None:
    """Remove those of the wings that have no room left. Call it holding the palace."""
    held = {wing.pk: wing for wing in wings if wing.number}
    gone = [held[key] for key in _delete(palace, "wing", held, unless="room")]
    _raise_marks(palace, [], gone)
    _forget_activities(palace, "wing", gone)


def _told_of(palace: Palace, rooms: Sequence[Room], purged: Sequence[Drawer]) -> list[Room]:
    """The rooms, and those elsewhere that parts of these conversations were moved to or from.

    Their titles may have words of any part.
    """
    conversations = {(drawer.source, drawer.conversation) for drawer in purged}
    others = Room.objects.within(palace).filter(
        source__in={source for source, _ in conversations},
        external_id__in={conversation for _, conversation in conversations},
    )
    parts = [room for room in others if (room.source, room.external_id) in conversations]
    return list({room.pk: room for room in (*parts, *rooms)}.values())


def _was_said_in(room: Room, drawer: Drawer) -> bool:
    conversation = (room.source, room.external_id)
    return drawer.room_id == room.pk or (drawer.source, drawer.conversation) == conversation


def _delete(palace: Palace, table: str, keys: Iterable[int], *, unless: str) -> set[int]:
    """Delete those of the rows that no row of another table refers to; returns their keys."""
    # Rows below them go with them in the database; Django would look for those in all palaces.
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM palace_{table} t WHERE palace_id = %s AND id = ANY(%s)"  # noqa: S608
            f" AND NOT EXISTS (SELECT FROM palace_{unless} r"
            f" WHERE r.palace_id = t.palace_id AND r.{table}_id = t.id) RETURNING id",
            [palace.pk, list(set(keys))],
        )
        return {key for (key,) in cursor.fetchall()}


def _delete_unknown(palace: Palace, entities: Iterable[int]) -> None:
    """Delete those of the entities that are named nowhere, and that no fact is about."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM palace_entity e WHERE palace_id = %s AND id = ANY(%s)
            AND NOT EXISTS (SELECT FROM palace_mention m
                WHERE m.palace_id = e.palace_id AND m.entity_id = e.id)
            AND NOT EXISTS (SELECT FROM palace_fact f
                WHERE f.palace_id = e.palace_id AND f.subject_id = e.id)
            AND NOT EXISTS (SELECT FROM palace_fact f
                WHERE f.palace_id = e.palace_id AND f.object_entity_id = e.id)
            RETURNING uuid
            """,
            [palace.pk, list(set(entities))],
        )
        gone = [uuid for (uuid,) in cursor.fetchall()]
    if gone:
        forget_changes(palace, gone)


def _keep_numbers(purged: Sequence[Drawer]) -> None:
    highest: dict[int, int] = {}
    for drawer in purged:
        highest[drawer.room_id] = max(highest.get(drawer.room_id, 0), drawer.number)
    for key, number in highest.items():
        Room.objects.filter(palace=purged[0].palace_id, pk=key).update(
            highest_drawer=Greatest(F("highest_drawer"), Value(number))
        )


def _raise_marks(palace: Palace, rooms: Sequence[Room], wings: Sequence[Wing]) -> None:
    Palace.objects.filter(pk=palace.pk).update(
        highest_room=Greatest("highest_room", max((room.number for room in rooms), default=0)),
        highest_wing=Greatest("highest_wing", max((wing.number for wing in wings), default=0)),
    )


def _tell_anew(room: Room) -> None:
    """What was told of the room names it as it is called now."""
    told = Activity.objects.filter(
        palace=room.palace_id, kind=Activity.Kind.MEMORY_MINED, detail__room=str(room.uuid)
    )
    for activity in told:
        activity.summary = summary_of(activity.detail["made"]["drawers"], room)
        activity.save(update_fields=["summary"])


def _forget_activities(palace: Palace, about: str, gone: Sequence[Room] | Sequence[Wing]) -> None:
    """Activities keep their figures; the sentence named what is gone."""
    if not gone:
        return
    told = Activity.objects.filter(
        palace=palace, **{f"detail__{about}__in": [str(place.uuid) for place in gone]}
    )
    for kind, sentence in FORGOTTEN.items():
        told.filter(kind=kind).update(summary=sentence)


def forget_names(room: Room, purged: Sequence[str]) -> bool:
    """Take words that only the purged texts had out of the titles of the room and its closets.

    Returns whether the room's own title had such a word.

    Args:
        purged: The texts; their drawers and postings are deleted already.
    """
    said: set[str] = set().union(*(analyze(text).keys() for text in purged))
    closets = list(Closet.objects.filter(palace=room.palace_id, room=room).order_by("pk"))
    titles = [room.title, *(closet.title for closet in closets)]
    telling = {term for title in titles for term in analyze(title) if term in said}
    lost = telling - _still_said(room, telling)
    for closet in closets:
        if lost & analyze(closet.title).keys():
            closet.title = _without(lost, closet.title) or UNTITLED_TOPIC
            # A number of its own keeps it apart from a closet of that name.
            closet.slug = f"{slug_of(closet.title)[:SLUG_STEM]}-{closet.pk}"
            closet.save(update_fields=["title", "slug"])
    if not lost & analyze(room.title).keys():
        return False
    room.title = _without(lost, room.title) or UNTITLED
    room.save(update_fields=["title"])
    return True


def _still_said(room: Room, terms: set[str]) -> set[str]:
    """Those of the terms that a mined drawer left in the room has."""
    left = Drawer.objects.filter(palace=room.palace_id, room=room)
    return postings.terms_used_by(room.palace, terms, left.values_list("pk", flat=True))


def _without(lost: set[str], title: str) -> str:
    """The title without those words, nor what then stands at its ends and says nothing."""
    words = [(word, analyze(word).keys()) for word in title.split()]
    left = [(word, terms) for word, terms in words if not lost & terms]
    while left and not left[0][1]:
        left.pop(0)
    while left and not left[-1][1]:
        left.pop()
    joined = " ".join(word for word, _ in left)
    return joined[:1].upper() + joined[1:]

"""Cleanup after a purge: removes empty places, and purged words from titles and activities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from django.db import connection
from django.db.models import F, Value
from django.db.models.functions import Greatest

from language.analyzer import analyze
from language.detection import language_of
from language.slugs import slug_of
from palace.curation.entities import forget_changes
from palace.models import Activity, Closet, Drawer, Palace, Room, Wing
from palace.storage import UNTITLED
from palace.storage.indexing import postings

UNTITLED_TOPIC = "Untitled topic"
# Length of a rebuilt slug, so that a number can be appended.
SLUG_STEM = 160
# Summaries of activities about deleted places; the original summary contains a name.
FORGOTTEN = {
    Activity.Kind.MEMORY_MINED: "Remembered a conversation that was deleted for good since.",
    Activity.Kind.WING_CHANGED: "Renamed a wing that was deleted for good since.",
    Activity.Kind.WINGS_MERGED: "Merged two wings that were deleted for good since.",
}


def remove_emptied(palace: Palace, purged: Sequence[Drawer], entities: Iterable[int]) -> None:
    """Remove places that are empty after the purge, and entities without mentions or facts.

    Drawers in the trash count as content. Numbers of removed places are not reused. Call it in
    the transaction that deleted the drawers.
    """
    rooms = {drawer.room_id: drawer.room for drawer in purged}
    wings = {room.wing_id: room.wing for room in rooms.values()}
    _keep_numbers(purged)
    remove_empty_closets(palace, [each.closet_id for each in purged if each.closet_id])
    gone = _delete(palace, "room", rooms, unless="drawer")
    _raise_highest_numbers(palace, [rooms[key] for key in gone], [])
    _forget_activities(palace, "room", [rooms[key] for key in gone])
    remove_empty_wings(palace, list(wings.values()))
    delete_unknown(palace, entities)
    for room in _rooms_to_rename(
        palace, [room for key, room in rooms.items() if key not in gone], purged
    ):
        texts = [drawer.text for drawer in purged if _belongs_to(room, drawer)]
        if forget_names(room, texts):
            _rewrite_activities(room)


def remove_empty_closets(palace: Palace, closets: Iterable[int]) -> None:
    """Remove the empty ones of these closets, by key; drawers in the trash count as content."""
    _delete(palace, "closet", closets, unless="drawer")


def remove_empty_wings(palace: Palace, wings: Sequence[Wing]) -> None:
    """Remove those of the wings that have no room left. The caller locks the palace."""
    candidates = {wing.pk: wing for wing in wings if wing.number}
    gone = [candidates[key] for key in _delete(palace, "wing", candidates, unless="room")]
    _raise_highest_numbers(palace, [], gone)
    _forget_activities(palace, "wing", gone)


def _rooms_to_rename(palace: Palace, rooms: Sequence[Room], purged: Sequence[Drawer]) -> list[Room]:
    """The rooms, and all other rooms of these conversations.

    Their titles may contain words of any part of the conversation.
    """
    conversations = {(drawer.source, drawer.conversation) for drawer in purged}
    others = Room.objects.within(palace).filter(
        source__in={source for source, _ in conversations},
        external_id__in={conversation for _, conversation in conversations},
    )
    parts = [room for room in others if (room.source, room.external_id) in conversations]
    return list({room.pk: room for room in (*parts, *rooms)}.values())


def _belongs_to(room: Room, drawer: Drawer) -> bool:
    conversation = (room.source, room.external_id)
    return drawer.room_id == room.pk or (drawer.source, drawer.conversation) == conversation


def _delete(palace: Palace, table: str, keys: Iterable[int], *, unless: str) -> set[int]:
    """Delete the rows that no row of another table refers to; returns their keys."""
    # The database cascades; Django would search dependent rows in all palaces.
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM palace_{table} t WHERE palace_id = %s AND id = ANY(%s)"  # noqa: S608
            f" AND NOT EXISTS (SELECT FROM palace_{unless} r"
            f" WHERE r.palace_id = t.palace_id AND r.{table}_id = t.id) RETURNING id",
            [palace.pk, list(set(keys))],
        )
        return {key for (key,) in cursor.fetchall()}


def delete_unknown(palace: Palace, entities: Iterable[int]) -> None:
    """Delete the entities without mentions and facts."""
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


def _raise_highest_numbers(palace: Palace, rooms: Sequence[Room], wings: Sequence[Wing]) -> None:
    Palace.objects.filter(pk=palace.pk).update(
        highest_room=Greatest("highest_room", max((room.number for room in rooms), default=0)),
        highest_wing=Greatest("highest_wing", max((wing.number for wing in wings), default=0)),
    )


def _rewrite_activities(room: Room) -> None:
    """Rewrite the summaries of the room's activities with its current title."""
    activities = Activity.objects.filter(
        palace=room.palace_id, kind=Activity.Kind.MEMORY_MINED, detail__room=str(room.uuid)
    )
    for activity in activities:
        activity.summary = Activity.summary_of_mining(activity.detail["made"]["drawers"], room)
        activity.save(update_fields=["summary"])


def _forget_activities(palace: Palace, about: str, gone: Sequence[Room] | Sequence[Wing]) -> None:
    """Replace summaries that name deleted places; figures are kept, but no name to undo with."""
    if not gone:
        return
    activities = Activity.objects.filter(
        palace=palace, **{f"detail__{about}__in": [str(place.uuid) for place in gone]}
    )
    for kind, sentence in FORGOTTEN.items():
        activities.filter(kind=kind).update(summary=sentence)
    for merge in activities.filter(kind=Activity.Kind.WINGS_MERGED, detail__has_key="undo"):
        merge.detail.pop("undo")
        merge.save(update_fields=["detail"])


def forget_names(room: Room, purged: Sequence[str]) -> bool:
    """Remove words that only the purged texts contain from the titles of the room and its closets.

    Returns whether the room's own title has changed.

    Args:
        purged: The texts; their drawers and postings are already deleted.
    """
    purged_terms: set[str] = set().union(*(analyze(text).keys() for text in purged))
    closets = list(Closet.objects.filter(palace=room.palace_id, room=room).order_by("pk"))
    titles = [room.title, *(closet.title for closet in closets)]
    languages = {language_of(text) for text in purged}
    candidate_terms = purged_terms & set().union(*(_terms(title, languages) for title in titles))
    lost_terms = candidate_terms - _remaining_terms(room, candidate_terms)
    for closet in closets:
        if lost_terms & _terms(closet.title, languages):
            closet.title = _remove_terms(lost_terms, closet.title, languages) or UNTITLED_TOPIC
            # The key makes the slug unique.
            closet.slug = f"{slug_of(closet.title)[:SLUG_STEM]}-{closet.pk}"
            closet.save(update_fields=["title", "slug"])
    if not lost_terms & _terms(room.title, languages):
        return False
    room.title = _remove_terms(lost_terms, room.title, languages) or UNTITLED
    room.save(update_fields=["title"])
    return True


def _remaining_terms(room: Room, terms: set[str]) -> set[str]:
    """The terms that occur in remaining mined drawers of the room."""
    left = Drawer.objects.filter(palace=room.palace_id, room=room)
    return postings.terms_used_by(room.palace, terms, left.values_list("pk", flat=True))


def _terms(title: str, languages: Iterable[str]) -> set[str]:
    """The terms of a title, read in each of the languages."""
    return set().union(*(analyze(title, language) for language in languages))


def _remove_terms(lost_terms: set[str], title: str, languages: Collection[str]) -> str:
    """The title without words with these terms, and without stop words at its new ends."""
    words = [(word, _terms(word, languages)) for word in title.split()]
    left = [(word, terms) for word, terms in words if not lost_terms & terms]
    while left and not left[0][1]:
        left.pop(0)
    while left and not left[-1][1]:
        left.pop()
    joined = " ".join(word for word, _ in left)
    return joined[:1].upper() + joined[1:]

"""Empty places: a purge or a move removes them, and undoing a move brings a wing back.

After a purge, its words are removed from titles and activities, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import F, Q, Value
from django.db.models.functions import Greatest

from language.analyzer import analyze, language_of
from language.errors import PalaceError
from language.slugs import slug_of
from palace.curation.entities import forget_changes
from palace.models import Activity, Closet, Drawer, Palace, Room, Wing, WingAlias
from palace.storage import UNTITLED, put_wing_back
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


class NoWayBack(PalaceError):
    """A move or merge that cannot be undone; the message says why."""

    code = "no_way_back"


@dataclass(slots=True)
class MoveRecord:
    """What undoing a move needs, without words except those of wings that are gone.

    Attributes:
        rooms: Rooms that moved as they are: `id`, and their former `wing`, `slot`, `area` and
            `is_settled`.
        parts: What went to another room, as `described`, with the former `wing` and `slot`, and
            the room that it went `into`.
        wings: The wings that were emptied, as `described_wing`.
    """

    rooms: list[dict[str, Any]] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    wings: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self, to: Wing) -> dict[str, Any]:
        wings = {"wings": self.wings} if self.wings else {}
        return {"to": to.pk, "rooms": self.rooms, "parts": self.parts, **wings}

    def remove_if_empty(self, wing: Wing) -> None:
        as_it_was = described_wing(wing)
        if remove_empty_wings(wing.palace, [wing]):
            self.wings.append(as_it_was)


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
    _forget_activities(palace, "wing", remove_empty_wings(palace, list(wings.values())))
    _forget_emptied_wings(palace)
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


def remove_empty_wings(palace: Palace, wings: Sequence[Wing]) -> list[Wing]:
    """Remove and return those of the wings without a room left. The caller locks the palace."""
    candidates = {wing.pk: wing for wing in wings if wing.number}
    gone = [candidates[key] for key in _delete(palace, "wing", candidates, unless="room")]
    _raise_highest_numbers(palace, [], gone)
    return gone


def described_wing(wing: Wing) -> dict[str, Any]:
    """What `restore_wing` needs: the wing as it is, and its aliases."""
    names = WingAlias.objects.filter(palace=wing.palace_id, wing=wing)
    columns = ("id", "number", "slug", "name", "kind", "kept_months", "never")
    return {
        **{name: getattr(wing, name) for name in columns},
        "uuid": str(wing.uuid),
        "created_at": wing.created_at.isoformat(),
        "aliases": list(names.order_by("pk").values_list("slug", flat=True)),
    }


def restore_wing(palace: Palace, record: Mapping[str, Any]) -> Wing:
    """The wing as it was, without rooms. The caller locks the palace.

    Of its aliases, those that other wings took meanwhile stay theirs.

    Raises:
        NoWayBack: another one has its name.
    """
    if Wing.objects.within(palace).filter(slug=record["slug"]).exists():
        raise NoWayBack(f"Another wing is called “{record['name']}” now. Rename that one first.")
    return put_wing_back(palace, record)


def wing_again(palace: Palace, key: int) -> Wing:
    """The wing with this key; one that a move emptied is brought back.

    Raises:
        NoWayBack: it was removed otherwise, or another one has its name.
    """
    wing = Wing.objects.within(palace).filter(pk=key).first()
    if wing is not None:
        return wing
    moves = Activity.objects.filter(palace=palace, kind=Activity.Kind.DRAWERS_MOVED)
    emptied = moves.filter(detail__undo__wings__contains=[{"id": key}]).order_by("-pk").first()
    if emptied is None:
        raise NoWayBack("The wing it was in is no longer here, so nothing was undone.")
    [record] = [each for each in emptied.detail["undo"]["wings"] if each["id"] == key]
    return restore_wing(palace, record)


def take_former_slots(palace: Palace, slots: Mapping[int, int | None]) -> None:
    """Give rooms, by key, their former slots on the plan; where one is taken the room has none."""
    known = {key: slot for key, slot in slots.items() if slot is not None}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE palace_room r SET slot = former.slot
            FROM unnest(%s::bigint[], %s::integer[]) AS former (id, slot)
            WHERE r.palace_id = %s AND r.id = former.id AND NOT EXISTS (SELECT FROM palace_room t
                WHERE t.palace_id = r.palace_id AND t.wing_id = r.wing_id AND t.slot = former.slot)
            """,
            [list(known), list(known.values()), palace.pk],
        )


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
    undoable = (Activity.Kind.WINGS_MERGED, Activity.Kind.DRAWERS_MOVED)
    emptied: list[dict[str, Any]] = []
    for change in activities.filter(kind__in=undoable, detail__has_key="undo"):
        record = change.detail.pop("undo")
        change.save(update_fields=["detail"])
        emptied += record.get("wings", ())
        emptied += [record["wing"]] if "wing" in record else []
    forget_wings(palace, emptied)


def forget_wings(palace: Palace, wings: Sequence[Mapping[str, Any]]) -> None:
    """Forget the names of these wings, by `uuid`, except those that exist or can be brought back.

    The caller locks the palace.
    """
    uuids = {str(wing["uuid"]) for wing in wings}
    present = Wing.objects.within(palace).filter(uuid__in=uuids).values_list("uuid", flat=True)
    changes = Activity.objects.filter(palace=palace)
    gone = [
        Wing(uuid=uuid)
        for uuid in uuids - {str(key) for key in present}
        if not changes.filter(
            Q(detail__undo__wings__contains=[{"uuid": uuid}]) | Q(detail__undo__wing__uuid=uuid)
        ).exists()
    ]
    _forget_activities(palace, "wing", gone)


def _forget_emptied_wings(palace: Palace) -> None:
    """Forget the wings that moves emptied, once nothing is left of what was moved out of them."""
    moves = Activity.objects.filter(
        palace=palace, kind=Activity.Kind.DRAWERS_MOVED, detail__undo__has_key="wings"
    )
    gone: list[dict[str, Any]] = []
    for move in moves:
        record = move.detail["undo"]
        left = _wings_with_something_left(palace, record)
        emptied = record.pop("wings")
        wings = [wing for wing in emptied if wing["id"] in left]
        if len(wings) == len(emptied):
            continue
        if not left:
            del move.detail["undo"]
        elif wings:
            record["wings"] = wings
        move.save(update_fields=["detail"])
        gone += emptied
    # Last, as it changes records of other moves.
    forget_wings(palace, gone)


def _wings_with_something_left(palace: Palace, record: Mapping[str, Any]) -> set[int]:
    """The keys of the wings out of which a move took rooms or drawers that still exist."""
    rows = {row["id"]: row["wing"] for row in record["rooms"]}
    parts = {int(key): part["wing"] for part in record["parts"] for key in part["drawers"]}
    rooms = Room.objects.within(palace).filter(pk__in=rows).values_list("pk", flat=True)
    drawers = Drawer.objects.within(palace).filter(pk__in=parts).values_list("pk", flat=True)
    return {rows[key] for key in rooms} | {parts[key] for key in drawers}


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

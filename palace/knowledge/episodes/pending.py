"""Whose turn it is: conversations that were mined, or changed, since their episode was written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from palace.knowledge.episodes.material import Key, Material, gather
from palace.models import EmbeddingSpace, Palace, Room
from palace.models.episodes import BEFORE_EPISODES


@dataclass(frozen=True, slots=True, eq=False)
class Due:
    """A conversation whose turn it is.

    Attributes:
        since: Its rooms, by key, and since when they wait; whatever changes the conversation
            changes this.
        material: None where nothing is mined, or all of it is in the trash.
    """

    key: Key
    since: Mapping[int, datetime | None]
    material: Material | None

    @property
    def asked_for(self) -> bool:
        """Whether it was mined, or changed, since there are episodes."""
        return any(at and at > BEFORE_EPISODES for at in self.since.values())


def due_rooms(palace: Palace) -> QuerySet[Room]:
    """Those that wait for longest first."""
    waiting = Room.objects.within(palace).filter(episode_due_at__isnull=False)
    return waiting.order_by("episode_due_at", "pk")


def due_among(palace: Palace, space: EmbeddingSpace, rooms: Sequence[Room]) -> list[Due]:
    """Those of the rooms' conversations that are due, with what their episodes are made from."""
    # First of all since when: what changes behind this is told by `take`.
    all_of_them = _rooms_of(palace, {(room.source, room.external_id) for room in rooms})
    waiting = {
        key: of_key
        for key, of_key in all_of_them.items()
        if any(room.episode_due_at for room in of_key)
    }
    materials = gather(palace, space, waiting) if waiting else {}
    return [Due(key, _since(of_key), materials.get(key)) for key, of_key in waiting.items()]


def take(palace: Palace, dues: Sequence[Due]) -> set[Key]:
    """Those that nobody has changed, or taken, meanwhile: they are due no more.

    Call it holding the palace, in the transaction that writes their episodes.
    """
    now = _rooms_of(palace, {due.key for due in dues})
    ours = [due for due in dues if _since(now.get(due.key, [])) == due.since]
    rooms = [room for due in ours for room in due.since]
    Room.objects.within(palace).filter(pk__in=rooms).update(episode_due_at=None)
    return {due.key for due in ours}


def _since(rooms: Sequence[Room]) -> dict[int, datetime | None]:
    return {room.pk: room.episode_due_at for room in rooms}


def _rooms_of(palace: Palace, keys: Collection[Key]) -> dict[Key, list[Room]]:
    rooms = Room.objects.within(palace).filter(
        source__in={source for source, _ in keys},
        external_id__in={conversation for _, conversation in keys},
    )
    found: defaultdict[Key, list[Room]] = defaultdict(list)
    for room in rooms.order_by("pk"):
        if (room.source, room.external_id) in keys:
            found[room.source, room.external_id].append(room)
    return dict(found)

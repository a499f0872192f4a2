"""Episodes: summaries of conversations, written here after mining, or stored by callers.

There is one for each mined conversation, written again when it changes. Rooms say whose turn it is:
`episode_due_at` is set in the transaction that mines, trashes or restores their drawers, and taken
back in the one that writes the episode. So nothing depends on a task being run once, or at all.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from llm.errors import LLMError
from llm.providers import Endpoint
from palace.knowledge.episodes.episode_drawers import Key, Material, Summary, gather
from palace.knowledge.episodes.episode_store import (
    MOST_SUMMARY_CHARS,
    Made,
    delete_episodes_of,
    delete_stored_episodes,
    derived,
    episodes_of_conversation,
    latest_episodes,
    restore_episodes,
    search_episodes,
    search_episodes_of,
    store_derived,
    store_episode,
    trash_covered,
    trash_episodes,
)
from palace.knowledge.episodes.summaries import input_hash, summarise, summarise_with_model
from palace.models import BEFORE_EPISODES, Activity, EmbeddingSpace, Palace, Room, opens_palace
from palace.models.concurrency import held_if_free
from palace.storage.indexing.episode_vectors import embed_texts
from palace.storage.indexing.spaces import active_space
from settings_app.models import ModelUse, settings_of

__all__ = [
    "MOST_SUMMARY_CHARS",
    "delete_episodes_of",
    "delete_stored_episodes",
    "episodes_of_conversation",
    "latest_episodes",
    "restore_episodes",
    "search_episodes",
    "search_episodes_of",
    "store_episode",
    "trash_episodes",
    "write_due_episodes",
    "write_episodes",
]

logger = logging.getLogger(__name__)

# Rooms per batch of database queries and per call to the embedder.
BATCH = 32


@opens_palace
def write_due_episodes(palace: Palace, *, seconds: float | None = None) -> bool:
    """Write due episodes, longest wait first.

    Where somebody else is at it in this palace, nothing is done. May be killed at any time.

    Returns:
        Whether all were written, or are being written; False when the time was over first.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    with held_if_free(f"write episodes of palace {palace.pk}") as ours:
        while ours and (rooms := list(due_rooms(palace)[:BATCH])):
            write_episodes(palace, rooms)
            if deadline is not None and time.monotonic() > deadline:
                return not due_rooms(palace).exists()
    return True


def write_episodes(palace: Palace, rooms: Sequence[Room]) -> None:
    """Write due episodes of the rooms' conversations.

    Doing it twice, or at once in two places, leaves the same episodes: what has changed
    meanwhile, or was written by somebody else, is left to the next run. Conversations mined
    before there were episodes are summed up by local rules: nobody asked for a model's bill.
    """
    endpoint = settings_of(palace.owner_id).chat_model(ModelUse.FILING).endpoint
    space = active_space()
    dues = due_among(palace, space, rooms)
    # Store each answer of a model at once.
    asked = [due for due in dues if endpoint and due.asked_for]
    for due in asked:
        _write(palace, space, [due], endpoint)
    _write(palace, space, [due for due in dues if due not in asked], None)


def _write(
    palace: Palace, space: EmbeddingSpace, dues: Sequence[Due], endpoint: Endpoint | None
) -> None:
    if not dues:
        return
    notes: list[str] = []
    made = _embedded(palace, space, _made(palace, dues, endpoint, notes))
    with transaction.atomic():
        palace.lock()
        ours = take(palace, dues)
        store_derived(palace, space, [one for one in made if one.key in ours])
        trash_covered(palace, [due.key for due in dues if due.key in ours and due.material is None])
    if notes:
        _note(palace, dues, notes)


def _note(palace: Palace, dues: Sequence[Due], notes: Sequence[str]) -> None:
    rooms = Room.objects.within(palace).filter(pk__in={key for due in dues for key in due.since})
    for room in rooms.select_related("palace"):
        Activity.objects.note_degraded(room, notes)


def _made(
    palace: Palace, dues: Sequence[Due], endpoint: Endpoint | None, notes: list[str]
) -> list[Made]:
    """Summarise unless the material is the same as before.

    Args:
        notes: Receives sentences on what was degraded.
    """
    there = derived(palace, [due.key for due in dues])
    made = []
    for due in dues:
        if due.material is None:
            continue
        digest = input_hash(due.material, endpoint)
        if due.key in there and there[due.key].input_hash == digest:
            made.append(Made(due.key, due.material, digest))
            continue
        summary = _summary(palace, due.material, endpoint, notes)
        if endpoint and not summary.model:
            # The model is asked again when the episode is due next.
            digest = input_hash(due.material, None)
        made.append(Made(due.key, due.material, digest, summary))
    return made


def _summary(
    palace: Palace, material: Material, endpoint: Endpoint | None, notes: list[str]
) -> Summary:
    if endpoint is not None:
        try:
            return summarise_with_model(material, endpoint=endpoint, owner_id=palace.owner_id)
        except LLMError as error:
            logger.warning("An episode was written without the language model: %s", error)
            notes.append(f"The summary was written without the language model. {error}")
    return summarise(material)


def _embedded(palace: Palace, space: EmbeddingSpace, made: Sequence[Made]) -> list[Made]:
    """Add the vectors of new summaries, embedded in one call."""
    summaries = {one.key: one.summary for one in made if one.summary}
    known = {key: summary.vector for key, summary in summaries.items()}
    unknown = [key for key, vector in known.items() if vector is None]
    vectors = embed_texts(palace, space, [summaries[key].text for key in unknown])
    known |= dict(zip(unknown, vectors, strict=True))
    return [replace(one, vector=known.get(one.key)) for one in made]


@dataclass(frozen=True, slots=True, eq=False)
class Due:
    """A conversation whose episode is due.

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
        """Whether it was mined or changed since episodes were introduced."""
        return any(at and at > BEFORE_EPISODES for at in self.since.values())


def due_rooms(palace: Palace) -> QuerySet[Room]:
    """Longest wait first."""
    waiting = Room.objects.within(palace).filter(episode_due_at__isnull=False)
    return waiting.order_by("episode_due_at", "pk")


def due_among(palace: Palace, space: EmbeddingSpace, rooms: Sequence[Room]) -> list[Due]:
    """Due conversations of the rooms, with the material of their episodes."""
    # Read the due times first: `take` detects later changes by them.
    all_of_them = _rooms_of(palace, {(room.source, room.external_id) for room in rooms})
    waiting = {
        key: of_key
        for key, of_key in all_of_them.items()
        if any(room.episode_due_at for room in of_key)
    }
    materials = gather(palace, space, waiting) if waiting else {}
    return [Due(key, _since(of_key), materials.get(key)) for key, of_key in waiting.items()]


def take(palace: Palace, dues: Sequence[Due]) -> set[Key]:
    """Conversations that were not changed or taken meanwhile; clears their due times.

    The caller locks the palace; call it in the transaction that writes their episodes.
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

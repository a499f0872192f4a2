"""Rows of episodes: stored once per conversation, and trashed, restored and deleted with messages.

A derived episode may quote any message of its conversation: it goes to the trash when one of the
messages does, and is written again from the rest. A stored episode goes to the trash when no
message of its conversation is left. In all functions the caller locks the palace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef
from django.utils import timezone

from palace.knowledge.episodes.material import Key, Material, Summary
from palace.models import Drawer, DrawerQuerySet, EmbeddingSpace, Episode, Palace, Room
from palace.storage.indexing.episode_vectors import forget_texts, replace
from palace.storage.indexing.fact_vectors import Vector

_WRITTEN = [
    "agent",
    "summary",
    "key_decisions",
    "entities",
    "tools",
    "made_by",
    "model",
    "input_hash",
    "messages",
    "started_at",
    "ended_at",
    "updated_at",
    "trashed_at",
]


@dataclass(frozen=True, slots=True)
class Made:
    """
    Attributes:
        input_hash: Hash of its material.
        summary: None if the stored one is up to date.
        vector: None if the summary could not be embedded, or is None.
    """

    key: Key
    material: Material
    input_hash: str
    summary: Summary | None = None
    vector: Vector | None = None


def derived(palace: Palace, keys: Collection[Key]) -> dict[Key, Episode]:
    """The derived episodes of these conversations."""
    rows = Episode.objects.within(palace).derived()
    found = rows.filter(
        source__in={source for source, _ in keys},
        conversation__in={conversation for _, conversation in keys},
    )
    by_key = {(episode.source, episode.conversation): episode for episode in found}
    return {key: by_key[key] for key in keys if key in by_key}


def store_derived(palace: Palace, space: EmbeddingSpace, made: Sequence[Made]) -> None:
    """Store episodes, replacing previous versions."""
    there, now = derived(palace, [one.key for one in made]), timezone.now()
    same = [there[one.key].pk for one in made if one.summary is None and one.key in there]
    if same:
        Episode.objects.within(palace).filter(pk__in=same).update(trashed_at=None, updated_at=now)
    new = [(one, one.summary) for one in made if one.summary is not None]
    said_before = {there[one.key].summary for one, _ in new if one.key in there}
    rows = {one.key: _written(palace, there.get(one.key), one, text, now) for one, text in new}
    if not rows:
        return
    Episode.objects.bulk_create([row for key, row in rows.items() if key not in there])
    Episode.objects.bulk_update([row for key, row in rows.items() if key in there], _WRITTEN)
    replace(palace, space, {rows[one.key].pk: one.vector for one, _ in new})
    forget_texts(said_before - {row.summary for row in rows.values()})


def _written(
    palace: Palace, there: Episode | None, made: Made, summary: Summary, now: datetime
) -> Episode:
    source, conversation = made.key
    row = there or Episode(palace=palace, source=source, conversation=conversation, created_at=now)
    row.agent = made.material.agent
    row.summary = summary.text
    row.key_decisions = list(summary.decisions)
    row.entities = list(summary.entities)
    row.tools = list(summary.tools)
    row.made_by, row.model = summary.made_by, summary.model
    row.input_hash = made.input_hash
    row.messages = made.material.messages
    row.started_at, row.ended_at = made.material.started_at, made.material.ended_at
    row.updated_at, row.trashed_at = now, None
    return row


def trash_covered(palace: Palace, keys: Iterable[Key]) -> None:
    """Trash the episodes of conversations whose messages are all in the trash."""
    rows = [episode.pk for episode in derived(palace, list(keys)).values()]
    if rows:
        covered = Episode.objects.within(palace).kept().filter(pk__in=rows)
        covered.update(trashed_at=timezone.now())


def trash_episodes(palace: Palace, at: datetime) -> None:
    """Trash the episodes of drawers that went to the trash at this moment."""
    gone = Drawer.objects.within(palace).filter(trashed_at=at)
    _write_again(palace, gone)
    kept = Episode.objects.within(palace).kept()
    of_conversation = gone.filter(source=OuterRef("source"), conversation=OuterRef("conversation"))
    kept.derived().filter(Exists(of_conversation)).update(trashed_at=at)
    stored = kept.stored().filter(conversation__in=gone.values("conversation"))
    stored.exclude(Exists(_of_conversation(palace).kept())).update(trashed_at=at)


def restore_episodes(palace: Palace, drawers: Collection[int]) -> None:
    """Restore stored episodes of drawers, given by key, that returned from the trash.

    Derived episodes are marked as due, and written again.
    """
    back = Drawer.objects.within(palace).filter(pk__in=drawers)
    _write_again(palace, back)
    stored = Episode.objects.within(palace).stored().exclude(trashed_at=None)
    of_these = stored.filter(conversation__in=back.values("conversation"))
    of_these.filter(Exists(_of_conversation(palace).kept())).update(trashed_at=None)


def delete_episodes_of(palace: Palace, purged: Sequence[Drawer]) -> None:
    """Delete the episodes that may quote these drawers, which were just deleted."""
    gone_at: dict[Key, datetime] = {}
    for drawer in purged:
        if drawer.trashed_at is not None:
            key = (drawer.source, drawer.conversation)
            gone_at[key] = max(gone_at.get(key, drawer.trashed_at), drawer.trashed_at)
    doomed = [
        episode
        for key, episode in derived(palace, list(gone_at)).items()
        # An episode written since then does not quote them, and stays.
        if episode.trashed_at is not None or episode.updated_at <= gone_at[key]
    ]
    stored = Episode.objects.within(palace).stored()
    named = stored.filter(conversation__in={conversation for _, conversation in gone_at})
    doomed += named.exclude(Exists(_of_conversation(palace)))
    if doomed:
        rooms = (
            Drawer.objects.within(palace)
            .kept()
            .filter(
                source__in={episode.source for episode in doomed},
                conversation__in={episode.conversation for episode in doomed},
            )
        )
        _write_again(palace, rooms)
        Episode.objects.within(palace).filter(pk__in=[episode.pk for episode in doomed]).delete()
        forget_texts([episode.summary for episode in doomed])


def delete_stored_episodes(palace: Palace, conversation: str) -> int:
    """Delete the stored episodes of a conversation that has no drawer; returns how many."""
    named = Episode.objects.within(palace).stored().filter(conversation=conversation)
    doomed = list(named.exclude(Exists(_of_conversation(palace))))
    Episode.objects.within(palace).filter(pk__in=[episode.pk for episode in doomed]).delete()
    forget_texts([episode.summary for episode in doomed])
    return len(doomed)


def _write_again(palace: Palace, drawers: DrawerQuerySet) -> None:
    keys = list(drawers.order_by().values_list("room_id", flat=True).distinct())
    Room.objects.within(palace).filter(pk__in=keys).mark_episode_due()


def _of_conversation(palace: Palace) -> DrawerQuerySet:
    """Drawers of a conversation by its id, from any source."""
    return Drawer.objects.within(palace).filter(conversation=OuterRef("conversation"))

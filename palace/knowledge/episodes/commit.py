"""Episodes that were made, into rows that exist once. Call all of it holding the palace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from palace.knowledge.episodes.material import Key, Material, Summary
from palace.models import EmbeddingSpace, Episode, Palace
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
        input_hash: Of what it was made from.
        summary: None: it would be what is there already.
        vector: None where the summary could not be embedded, or there is none.
    """

    key: Key
    material: Material
    input_hash: str
    summary: Summary | None = None
    vector: Vector | None = None


def derived(palace: Palace, keys: Collection[Key]) -> dict[Key, Episode]:
    """The episodes that mining has written of these conversations."""
    rows = Episode.objects.within(palace).derived()
    found = rows.filter(
        source__in={source for source, _ in keys},
        conversation__in={conversation for _, conversation in keys},
    )
    by_key = {(episode.source, episode.conversation): episode for episode in found}
    return {key: by_key[key] for key in keys if key in by_key}


def land(palace: Palace, space: EmbeddingSpace, made: Sequence[Made]) -> None:
    """Write each in the place of the one there is."""
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


def cover(palace: Palace, keys: Iterable[Key]) -> None:
    """Put away the episodes of conversations whose words are all in the trash."""
    rows = [episode.pk for episode in derived(palace, list(keys)).values()]
    if rows:
        covered = Episode.objects.within(palace).kept().filter(pk__in=rows)
        covered.update(trashed_at=timezone.now())

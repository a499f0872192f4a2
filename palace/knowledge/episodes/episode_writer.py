"""Writing episodes: one for each conversation that has been mined, made anew when it changes.

Rooms say whose turn it is: `episode_due_at` is set in the transaction that mines, trashes or
restores their drawers, and taken back in the one that writes the episode. So nothing depends on
a task being run once, or at all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from llm.errors import LLMError
from llm.providers import Endpoint
from palace.knowledge.episodes.commit import Made, cover, derived, land
from palace.knowledge.episodes.extractive import summarise
from palace.knowledge.episodes.material import Material
from palace.knowledge.episodes.model import input_hash, summarise_with_model
from palace.knowledge.episodes.pending import Due, due_among, due_rooms, take
from palace.knowledge.episodes.summary import Summary
from palace.models import EmbeddingSpace, Palace, Room
from palace.models.locks import held_if_free
from palace.storage.indexing.episode_vectors import embed_texts
from palace.storage.indexing.spaces import active_space
from settings_app.models import settings_of

logger = logging.getLogger(__name__)

# Rooms whose conversations share questions to the database and a call to the embedder.
BATCH = 32


def write_due(palace: Palace, *, seconds: float | None = None) -> bool:
    """Write the episodes that are due, those that wait for longest first.

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
    """Write the episodes of the rooms' conversations, where they are due.

    Doing it twice, or at once in two places, leaves the same episodes: what has changed
    meanwhile, or was written by somebody else, is left to the next run. Conversations mined
    before there were episodes are summed up by local rules: nobody asked for a model's bill.
    """
    endpoint = settings_of(palace.owner_id).chat_model().endpoint
    space = active_space()
    dues = due_among(palace, space, rooms)
    # What a model said is not to wait for others.
    asked = [due for due in dues if endpoint and due.asked_for]
    for due in asked:
        _write(palace, space, [due], endpoint)
    _write(palace, space, [due for due in dues if due not in asked], None)


def _write(
    palace: Palace, space: EmbeddingSpace, dues: Sequence[Due], endpoint: Endpoint | None
) -> None:
    if not dues:
        return
    made = _embedded(palace, space, _made(palace, dues, endpoint))
    with transaction.atomic():
        palace.lock()
        ours = take(palace, dues)
        land(palace, space, [one for one in made if one.key in ours])
        cover(palace, [due.key for due in dues if due.key in ours and due.material is None])


def _made(palace: Palace, dues: Sequence[Due], endpoint: Endpoint | None) -> list[Made]:
    """What is made from the same as before is not made again."""
    there = derived(palace, [due.key for due in dues])
    made = []
    for due in dues:
        if due.material is None:
            continue
        told = input_hash(due.material, endpoint)
        if due.key in there and there[due.key].input_hash == told:
            made.append(Made(due.key, due.material, told))
            continue
        summary = _summary(palace, due.material, endpoint)
        if endpoint and not summary.model:
            # The model that failed is asked again when the conversation's turn comes next.
            told = input_hash(due.material, None)
        made.append(Made(due.key, due.material, told, summary))
    return made


def _summary(palace: Palace, material: Material, endpoint: Endpoint | None) -> Summary:
    if endpoint is not None:
        try:
            return summarise_with_model(material, endpoint=endpoint, owner_id=palace.owner_id)
        except LLMError as error:
            logger.warning("An episode was written without the language model: %s", error)
    return summarise(material)


def _embedded(palace: Palace, space: EmbeddingSpace, made: Sequence[Made]) -> list[Made]:
    """With the vectors of what is new; texts without one are embedded in one call."""
    summaries = {one.key: one.summary for one in made if one.summary}
    known = {key: summary.vector for key, summary in summaries.items()}
    unknown = [key for key, vector in known.items() if vector is None]
    vectors = embed_texts(palace, space, [summaries[key].text for key in unknown])
    known |= dict(zip(unknown, vectors, strict=True))
    return [replace(one, vector=known.get(one.key)) for one in made]

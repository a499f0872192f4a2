"""Rebuild: recomputes postings and passages, after a change of the analyzer or the splitting."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction

from language.analyzer import analyze
from language.english.message_traits import read_traits
from language.english.preference import preference_strength
from llm.errors import EmbedderUnavailable
from palace.models import Drawer, Palace, Passage, Posting
from palace.storage.indexing import passages, postings
from palace.storage.indexing.spaces import active_space, stays_active

BATCH = 128


@transaction.atomic
def rebuild_postings(palace: Palace) -> None:
    """Replace all postings of the palace. Recall reads the old ones until this commits."""
    palace.lock()  # Blocks mining, whose new postings would be counted twice.
    postings.lock_rewrites(palace)  # Blocks merging, whose output would be counted twice.
    Posting.objects.filter(palace=palace).delete()
    mined = Drawer.objects.within(palace).exclude(mined_at=None).order_by("pk")
    batch: list[Drawer] = []
    for drawer in mined.iterator(chunk_size=BATCH):
        batch.append(drawer)
        if len(batch) == BATCH:
            _append(palace, batch)
            batch = []
    _append(palace, batch)


def _append(palace: Palace, drawers: list[Drawer]) -> None:
    terms = {drawer.pk: analyze(drawer.text) for drawer in drawers}
    postings.append(palace, terms)
    for drawer in drawers:
        drawer.terms = terms[drawer.pk].total()
        drawer.traits = int(read_traits(drawer.text))
        drawer.preference = preference_strength(drawer.text, drawer.role)
    Drawer.objects.bulk_update(drawers, ["terms", "traits", "preference"])


def rebuild_passages(palace: Palace) -> Iterator[int]:
    """Split and embed every drawer again, in batches; yields the size of each batch.

    Ends early if another space becomes active, because its passages are all new.

    Raises:
        EmbedderUnavailable: finished batches are committed.
    """
    space, last = active_space(), 0
    while drawers := list(
        Drawer.objects.within(palace)
        .filter(pk__gt=last)
        .exclude(mined_at=None)
        .order_by("pk")[:BATCH]
    ):
        embedded = passages.Embedded(palace, space, [drawer.text for drawer in drawers])
        if embedded.vectors is None:
            raise EmbedderUnavailable(embedded.note)
        keys = [drawer.pk for drawer in drawers]
        with transaction.atomic():
            palace.lock()
            if not stays_active(space):
                return
            locked = Drawer.objects.within(palace).filter(pk__in=keys).order_by("pk")
            locked = locked.select_for_update(no_key=True)
            present = set(locked.values_list("pk", flat=True))
            Passage.objects.filter(palace=palace, space=space, drawer__in=keys).delete()
            passages.store(palace, keys, embedded, only=present)
        last = keys[-1]
        yield len(drawers)

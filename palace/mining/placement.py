"""Placement: writes mined drawers, and indexes restored drawers that already have a closet.

Mining sets the closet and writes the passages in one transaction. An unmined drawer with a closet
was mined in another palace, so it is indexed without extraction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connection, transaction

from language.analyzer import analyze
from language.english.message_traits import read_traits
from llm.commits import commit_without_waiting
from palace.models import Drawer, DrawerQuerySet, Palace, Room
from palace.storage import EmbeddedPassages, store_passages
from palace.storage.indexing import postings
from palace.storage.indexing.spaces import active_space, stays_active

# Drawers per embedder call.
BATCH = 384


def placed(palace: Palace) -> DrawerQuerySet:
    """Drawers with a closet that are not indexed yet, also in the trash."""
    drawers = Drawer.objects.within(palace)
    return drawers.filter(mined_at=None, closet__isnull=False)


def index_placed(rooms: Sequence[Room]) -> None:
    """Write passages and postings of the placed drawers in rooms of one palace.

    The caller holds the rooms' locks. Safe to kill and repeat.
    """
    if not rooms:
        return
    palace = rooms[0].palace
    waiting = placed(palace).filter(room__in=rooms).order_by("room_id", "position", "pk")
    while drawers := list(waiting[:BATCH]):
        _index(palace, drawers)


def _index(palace: Palace, drawers: Sequence[Drawer]) -> None:
    space = active_space()
    embedded = EmbeddedPassages(palace, space, drawers)
    with transaction.atomic():
        # A power failure loses the rows together with their `mined_at`, so the work is repeated.
        commit_without_waiting()
        palace.lock()
        locked = placed(palace).filter(pk__in=[drawer.pk for drawer in drawers]).order_by("pk")
        keys = set(locked.select_for_update().values_list("pk", flat=True))
        if stays_active(space):
            write_mined(palace, drawers, embedded, [each for each in drawers if each.pk in keys])


def write_mined(
    palace: Palace, drawers: Sequence[Drawer], embedded: EmbeddedPassages, written: Sequence[Drawer]
) -> None:
    """Write mined drawers. Call it in a transaction that locks the palace and the drawers.

    Args:
        drawers: The embedded drawers, in the order of `embedded`.
        written: The subset to write, with closets, tags and preferences set.
    """
    terms = {drawer.pk: analyze(drawer.text) for drawer in written}
    store_passages(palace, [drawer.pk for drawer in drawers], embedded, only=terms)
    postings.append(palace, terms)
    for drawer in written:
        drawer.terms = terms[drawer.pk].total()
        drawer.traits = int(read_traits(drawer.text))
    mark_mined(palace, written)


def mark_mined(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Update all in one statement: `bulk_update` would send a CASE with an arm per drawer."""
    columns = zip(
        *(
            (d.pk, d.closet_id, json.dumps(d.tags), d.preference, d.terms, d.traits)
            for d in drawers
        ),
        strict=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE palace_drawer d
            SET closet_id = n.closet, tags = n.tags, preference = n.preference,
                terms = n.terms, traits = n.traits, mined_at = now()
            FROM unnest(%s::bigint[], %s::bigint[], %s::jsonb[], %s::float8[], %s::int[],
                %s::smallint[]) AS n (id, closet, tags, preference, terms, traits)
            WHERE d.palace_id = %s AND d.id = n.id
            """,
            [*map(list, columns), palace.pk],
        )

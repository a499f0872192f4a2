"""Writing what was mined; and drawers restored with their places, which are indexed, not read.

A drawer that is mined is given its closet and its passages at once; one that has a closet and is
not mined was mined elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connection, transaction

from language.analyzer import analyze
from language.english.message_traits import read_traits
from llm.commits import commit_without_waiting
from palace.models import Drawer, Palace, Room
from palace.models.hierarchy import DrawerQuerySet
from palace.storage.indexing import passages, postings
from palace.storage.indexing.passages import Embedded
from palace.storage.indexing.spaces import active_space, stays_active

# Drawers that are indexed together: a full load for the embedder.
BATCH = 384


def placed(palace: Palace) -> DrawerQuerySet:
    """Those that have a place and are to be indexed, in the trash too."""
    drawers = Drawer.objects.within(palace)
    return drawers.filter(mined_at=None, closet__isnull=False)


def index_placed(rooms: Sequence[Room]) -> None:
    """Make passages and postings of what is placed in rooms of one palace.

    Call it holding the rooms. It may be killed and repeated.
    """
    if not rooms:
        return
    palace = rooms[0].palace
    waiting = placed(palace).filter(room__in=rooms).order_by("room_id", "position", "pk")
    while drawers := list(waiting[:BATCH]):
        _index(palace, drawers)


def _index(palace: Palace, drawers: Sequence[Drawer]) -> None:
    space = active_space()
    embedded = Embedded(palace, space, [drawer.text for drawer in drawers])
    with transaction.atomic():
        # Lost to a power cut, it is done again: the mark that it was done is lost with it.
        commit_without_waiting()
        palace.lock()
        held = placed(palace).filter(pk__in=[drawer.pk for drawer in drawers]).order_by("pk")
        keys = set(held.select_for_update().values_list("pk", flat=True))
        if stays_active(space):
            write_mined(palace, drawers, embedded, [each for each in drawers if each.pk in keys])


def write_mined(
    palace: Palace, drawers: Sequence[Drawer], embedded: Embedded, written: Sequence[Drawer]
) -> None:
    """Call it in a transaction that holds the palace and the drawers.

    Args:
        drawers: Those that were embedded, in that order.
        written: Those of them to write, with their closets, tags and preferences.
    """
    terms = {drawer.pk: analyze(drawer.text) for drawer in written}
    passages.store(palace, [drawer.pk for drawer in drawers], embedded, only=terms)
    postings.append(palace, terms)
    for drawer in written:
        drawer.terms = terms[drawer.pk].total()
        drawer.traits = int(read_traits(drawer.text))
    mark_mined(palace, written)


def mark_mined(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """One statement for all: `bulk_update` would send a CASE with as many arms as drawers."""
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

"""What mining writes of the drawers themselves: passages, postings, and that they are mined."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connection

from language.analyzer import analyze
from language.english.message_traits import read_traits
from palace.models import Drawer, Palace
from palace.storage.indexing import passages, postings
from palace.storage.indexing.passages import Embedded


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

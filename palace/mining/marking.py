"""Marking drawers as mined, with what was made of each."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connection

from palace.models import Drawer, Palace


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

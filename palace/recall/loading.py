"""Loading: drawers with the place they are in, and where their best passage starts and ends.

One statement, the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from django.db import connection, models

from palace.models import Closet, Drawer, EmbeddingSpace, Palace, Room, Wing
from palace.recall.instances import columns, read
from palace.recall.rows import keys_literal
from palace.recall.semantic import Ids

_TABLES: tuple[tuple[str, type[models.Model]], ...] = (
    ("d", Drawer),
    ("r", Room),
    ("w", Wing),
    ("c", Closet),
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A drawer with its room, wing and closet at hand; `span` is None if its passage is gone."""

    drawer: Drawer
    span: tuple[int, int] | None


def load(palace: Palace, space: EmbeddingSpace, drawers: Ids, ordinals: Ids) -> dict[int, Loaded]:
    """By key; those that are gone or in the trash by now are missing.

    Args:
        ordinals: Of the best passage of each.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _statement(), [keys_literal(drawers), keys_literal(ordinals), space.pk, palace.pk]
        )
        return {loaded.drawer.pk: loaded for loaded in map(_read, cursor)}


@cache
def _statement() -> str:
    own = ", ".join(columns(model, table) for table, model in _TABLES)
    return f"""
        SELECT p.start, p."end", {own}
        FROM unnest(%s::bigint[], %s::int[]) AS wanted (id, ordinal)
        JOIN palace_drawer d ON d.id = wanted.id
        JOIN palace_room r ON r.id = d.room_id
        JOIN palace_wing w ON w.id = r.wing_id
        LEFT JOIN palace_closet c ON c.id = d.closet_id
        LEFT JOIN palace_passage p ON p.palace_id = d.palace_id AND p.space_id = %s
            AND p.drawer_id = d.id AND p.ordinal = wanted.ordinal
        WHERE d.palace_id = %s AND d.trashed_at IS NULL
    """  # noqa: S608 - put together from the models.


def _read(row: Sequence[Any]) -> Loaded:
    values = iter(row)
    start, end = islice(values, 2)
    drawer, room = read(Drawer, values), read(Room, values)
    wing, closet = read(Wing, values), read(Closet, values)
    if drawer is None or room is None or wing is None:
        raise ValueError("A drawer was read without its room and wing.")
    room.wing, drawer.room, drawer.closet = wing, room, closet
    return Loaded(drawer, None if start is None else (start, end))

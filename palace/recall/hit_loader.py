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
from palace.recall.raw_sql import columns, keys_literal, read_instance
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
    parameters: dict[str, str | int] = {
        "palace": palace.pk,
        "space": space.pk,
        "drawers": keys_literal(drawers),
        "ordinals": keys_literal(ordinals),
    }
    with connection.cursor() as cursor:
        cursor.execute(_statement(), parameters)
        return {loaded.drawer.pk: loaded for loaded in map(_read, cursor)}


@cache
def _statement() -> str:
    """Each table is looked up by the row before: to plan the same as joins takes twice as long."""
    own = ", ".join(columns(model, table) for table, model in _TABLES)
    return f"""
        SELECT p.start, p."end", {own}
        FROM (SELECT * FROM palace_drawer WHERE palace_id = %(palace)s
            AND id = ANY(%(drawers)s::bigint[]) AND trashed_at IS NULL OFFSET 0) d
        CROSS JOIN LATERAL (SELECT * FROM palace_room WHERE id = d.room_id OFFSET 0) r
        CROSS JOIN LATERAL (SELECT * FROM palace_wing WHERE id = r.wing_id OFFSET 0) w
        LEFT JOIN LATERAL
            (SELECT * FROM palace_closet WHERE id = d.closet_id OFFSET 0) c ON true
        LEFT JOIN LATERAL (SELECT * FROM palace_passage WHERE palace_id = %(palace)s
            AND space_id = %(space)s AND drawer_id = d.id AND ordinal =
                (%(ordinals)s::int[])[array_position(%(drawers)s::bigint[], d.id)]
            OFFSET 0) p ON true
    """  # noqa: S608 - put together from the models.


def _read(row: Sequence[Any]) -> Loaded:
    values = iter(row)
    start, end = islice(values, 2)
    drawer, room = read_instance(Drawer, values), read_instance(Room, values)
    wing, closet = read_instance(Wing, values), read_instance(Closet, values)
    if drawer is None or room is None or wing is None:
        raise ValueError("A drawer was read without its room and wing.")
    room.wing, drawer.room, drawer.closet = wing, room, closet
    return Loaded(drawer, None if start is None else (start, end))

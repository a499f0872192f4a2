"""Loading: drawers with the place they are in, and where their best passage starts and ends.

One statement, the same every time. Django's own would be put together anew for each recall, column
by column of four tables, which takes longer than the database needs to answer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from django.db import connection, models

from palace.models import Closet, Drawer, EmbeddingSpace, Palace, Room, Wing
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
    columns = ", ".join(
        f'{table}."{field.column}"' for table, model in _TABLES for field in _fields(model)
    )
    return f"""
        SELECT p.start, p."end", {columns}
        FROM unnest(%s::bigint[], %s::int[]) AS wanted (id, ordinal)
        JOIN palace_drawer d ON d.id = wanted.id
        JOIN palace_room r ON r.id = d.room_id
        JOIN palace_wing w ON w.id = r.wing_id
        LEFT JOIN palace_closet c ON c.id = d.closet_id
        LEFT JOIN palace_passage p ON p.palace_id = d.palace_id AND p.space_id = %s
            AND p.drawer_id = d.id AND p.ordinal = wanted.ordinal
        WHERE d.palace_id = %s AND d.trashed_at IS NULL
    """  # noqa: S608 - put together from the models.


def _fields(model: type[models.Model]) -> Sequence[models.Field[Any, Any]]:
    return model._meta.concrete_fields


def _read(row: Sequence[Any]) -> Loaded:
    values = iter(row)
    start, end = islice(values, 2)
    drawer, room, wing, closet = (_instance(model, values) for _, model in _TABLES)
    room.wing, drawer.room, drawer.closet = wing, room, closet
    return Loaded(drawer, None if start is None else (start, end))


def _instance(model: type[models.Model], values: Iterator[Any]) -> Any:
    fields = _fields(model)
    own = [
        field.from_db_value(value, None, connection) if hasattr(field, "from_db_value") else value
        for field, value in zip(fields, values, strict=False)
    ]
    if own[0] is None:
        return None
    return model.from_db(connection.alias, [field.attname for field in fields], own)

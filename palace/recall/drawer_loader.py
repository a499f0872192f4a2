"""Drawer loader: the drawers of hits, each with its place, its passage and its ended facts.

One statement reads all of it. Rooms, wings and closets are shared among the drawers. The latest
drawers are for a conversation's first message that names no subject.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from django.db import models

from isolation.raw_sql import columns, fetch_rows, read_instance, width
from language.english.questions import is_plain, subject_of
from language.storable import storable_id
from palace.models import Closet, Drawer, EmbeddingSpace, Palace, Pointer, Room, Wing
from palace.recall.deduplication import ConversationState
from palace.recall.outdated import ENDED, Scope
from palace.recall.query import Query
from palace.recall.raw_sql import array_literal
from palace.recall.request import Hit, RecallRequest, RequestContext, scope_of
from palace.recall.semantic import Ids

# Of many drawers, so many bytes of text are loaded, the first ones' first.
MOST_BYTES = 8 << 20
FEW_HITS = 20
# Tables and models, and what nobody asks of a hit: a value takes as long to read as to use.
_TABLES: tuple[tuple[str, type[models.Model], frozenset[str]], ...] = (
    ("d", Drawer, frozenset("preference terms traits mined_at facts_read_at".split())),
    (
        "r",
        Room,
        frozenset(
            "started_at ended_at highest_drawer slot reviewed_at created_at"
            " area stored_count stored_bytes kept_count kept_bytes episode_due_at".split()
        ),
    ),
    ("w", Wing, frozenset("kept_months never created_at".split())),
    ("c", Closet, frozenset(["created_at"])),
)


@dataclass(frozen=True, slots=True)
class LoadedDrawer:
    """A drawer with its room, wing and closet loaded.

    Attributes:
        pointer: Its address, of the numbers that are loaded with it.
        span: Start and end of its passage; None if that is gone.
        ended: Keys of the facts that rest on it and have ended since, ascending.
    """

    drawer: Drawer
    pointer: Pointer
    span: tuple[int, int] | None
    ended: tuple[int, ...]


def load_drawers(
    palace: Palace, space: EmbeddingSpace, drawers: Ids, ordinals: Ids, scope: Scope
) -> tuple[dict[int, LoadedDrawer], int]:
    """Drawers by key, and how many were left out because all texts together are too long.

    Purged and trashed ones are missing.

    Args:
        drawers: Best first.
        ordinals: The ordinal of each drawer's best passage.
    """
    parameters = {
        "palace": palace.pk,
        "space": space.pk,
        "drawers": array_literal(drawers),
        "ordinals": array_literal(ordinals),
        "most_bytes": MOST_BYTES,
        **scope.parameters(),
    }
    limited = len(drawers) > FEW_HITS
    rows = fetch_rows(_statement(limited=limited), parameters, prepared=True)
    found = {loaded.drawer.pk: loaded for loaded in _read(rows)}
    return found, rows[0][0] - len(rows) if rows and limited else 0


# Only of drawers that facts rest on: of most there is nothing to look for.
_ENDED = f"""
    CASE WHEN d.id = ANY(ARRAY(
        SELECT drawer_id FROM palace_evidence
        WHERE palace_id = %(palace)s AND drawer_id = ANY(%(drawers)s::bigint[])
    )) THEN ARRAY({ENDED}) ELSE ARRAY[]::bigint[] END
"""  # noqa: S608 - put together from constants.
_KEPT = (
    "FROM palace_drawer WHERE palace_id = %(palace)s"
    " AND id = ANY(%(drawers)s::bigint[]) AND trashed_at IS NULL"
)
_FEW = f"SELECT *, NULL AS number_found {_KEPT} OFFSET 0"
_MANY = f"""
    SELECT *, count(*) OVER () AS number_found,
        sum(octet_length(text)) OVER (ORDER BY array_position(%(drawers)s::bigint[], id)) AS bytes
    {_KEPT} OFFSET 0
"""
_IN_ALL = "WHERE d.bytes <= %(most_bytes)s OR d.bytes = octet_length(d.text)"


@cache
def _statement(*, limited: bool) -> str:
    """Lateral lookups, because planning the same query with joins takes twice as long.

    Args:
        limited: Whether the texts together may be too long.
    """
    own = ", ".join(columns(model, table, without) for table, model, without in _TABLES)
    return f"""
        SELECT d.number_found, p.start, p."end", {_ENDED}, {own}
        FROM ({_MANY if limited else _FEW}) d
        CROSS JOIN LATERAL (SELECT * FROM palace_room
            WHERE palace_id = %(palace)s AND id = d.room_id OFFSET 0) r
        CROSS JOIN LATERAL (SELECT * FROM palace_wing
            WHERE palace_id = %(palace)s AND id = r.wing_id OFFSET 0) w
        LEFT JOIN LATERAL (SELECT * FROM palace_closet
            WHERE palace_id = %(palace)s AND id = d.closet_id OFFSET 0) c ON true
        LEFT JOIN LATERAL (SELECT * FROM palace_passage WHERE palace_id = %(palace)s
            AND space_id = %(space)s AND drawer_id = d.id AND ordinal =
                (%(ordinals)s::int[])[array_position(%(drawers)s::bigint[], d.id)]
            OFFSET 0) p ON true
        {_IN_ALL if limited else ""}
    """  # noqa: S608 - put together from the models.


def _read(rows: Sequence[Sequence[Any]]) -> Iterator[LoadedDrawer]:
    shared: dict[type[models.Model], dict[int, Any]] = {Room: {}, Wing: {}, Closet: {}}
    for _, start, end, ended, *values in rows:
        found, begin = {}, 0
        for model, without, number in _widths():
            known, key = shared.get(model, {}), values[begin]
            if key not in known:
                known[key] = read_instance(model, iter(values[begin : begin + number]), without)
            found[model] = known[key]
            begin += number
        yield _put_together(found, None if start is None else (start, end), tuple(ended))


@cache
def _widths() -> list[tuple[type[models.Model], frozenset[str], int]]:
    """Each model with what is left out of it and the number of its columns; first is its key."""
    return [(model, without, width(model, without)) for _, model, without in _TABLES]


def _put_together(
    found: Mapping[type[models.Model], Any], span: tuple[int, int] | None, ended: tuple[int, ...]
) -> LoadedDrawer:
    drawer, room, wing = found[Drawer], found[Room], found[Wing]
    # Descriptors would check each time what the database has checked.
    _set_related(room, "wing", wing)
    _set_related(drawer, "room", room)
    _set_related(drawer, "closet", found[Closet])
    pointer = Pointer(wing.number, room.number, drawer.number)
    return LoadedDrawer(drawer, pointer, span, ended)


def _set_related(instance: models.Model, name: str, related: models.Model | None) -> None:
    instance._state.fields_cache[name] = related


NOTHING_FOUND = "Nothing matched, so the latest messages are included."


def is_opening(conversation: ConversationState | None, question: Query, *, found_any: bool) -> bool:
    """Whether this is a conversation's first message without a subject ("hi") or without any hit
    or fact, so that the latest drawers are used instead. A named subject without a hit gets none.
    """
    if conversation is None or conversation.turn != 0:
        return False
    return is_plain(question) or not (found_any or subject_of(question))


def latest_hits(
    palace: Palace, request: RecallRequest, context: RequestContext, limit: int
) -> tuple[Hit, ...]:
    """The user's latest drawers that the request permits, newest first, with score 0."""
    said = Drawer.objects.within(palace).kept().filter(role="user")
    said = said.for_agent(storable_id(request.agent))
    if request.as_of is not None:
        said = said.filter(said_at__lte=request.as_of)
    if request.narrowing:
        said = said.filter(request.narrowing.condition(palace))
    if request.only_ids is not None:
        said = said.filter(pk__in=request.only_ids)
    newest = said.exclude(pk__in=[*request.exclude_ids, *request.repeats]).order_by(
        "-said_at", "-pk"
    )[:limit]
    keys = np.array(newest.values_list("pk", flat=True), dtype=np.int64)
    scope = scope_of(request, context)
    found, _ = load_drawers(palace, context.space, keys, np.zeros_like(keys), scope)
    return tuple(
        Hit(one.drawer, one.pointer, 0.0, {}, (0, len(one.drawer.text)), ended=one.ended)
        for one in (found[key] for key in keys.tolist() if key in found)
    )

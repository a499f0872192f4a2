"""The material of an episode: the drawers of a conversation, up to a limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np
from django.db import connection
from django.db.models import Count, Max, Q
from django.db.models.functions import Left

from palace.models import Drawer, DrawerQuerySet, EmbeddingSpace, Episode, Mention, Palace, Room
from palace.storage.indexing.fact_vectors import Vector

Key = tuple[str, str]  # A conversation's source, and its id there.
# Messages read from the beginning and the end of a longer conversation, and characters read of a
# longer message.
HEAD = 200
TAIL = 200
READ_CHARS = 4_000
# Maximum number of vectors, and how many of them from either end.
LOOKED_AT = 48
EDGE = 16
MOST_ENTITIES = 12
MOST_TOOLS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """One message, shortened.

    Attributes:
        whole: Whether that is all of it.
        vector: Of its first passage; None where it is not looked at, or has none yet.
        drawer: The key of its drawer; 0 if there is none.
    """

    role: str
    speaker: str
    text: str
    whole: bool = True
    vector: Vector | None = None
    drawer: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """
    Attributes:
        messages: How many the conversation has that are mined and not in the trash.
        entities: Names of whom and what it speaks of, the most often named first.
        tools: Names of the tools that were used, in order.
    """

    said: Sequence[Said]
    messages: int
    started_at: datetime
    ended_at: datetime
    title: str = ""
    agent: str = ""
    entities: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


def gather(
    palace: Palace, space: EmbeddingSpace, rooms: Mapping[Key, Sequence[Room]]
) -> dict[Key, Material]:
    """The material of conversations that have any, in a few queries.

    Args:
        rooms: Those of each conversation, the oldest first.
    """
    drawers = _readable(palace, rooms)
    counted = drawers.order_by().values_list("source", "conversation")
    lengths = {
        (source, conversation): (count, last)
        for source, conversation, count, last in counted.annotate(Count("pk"), Max("position"))
    }
    rows = _rows(drawers, {key: last for key, (_, last) in lengths.items()})
    vectors = _vectors(palace, space, [pk for of_key in rows.values() for pk in _looked_at(of_key)])
    named = _named(palace, drawers)
    return {
        key: _material(
            rooms[key],
            [(row.said(vectors.get(row.pk)), row.said_at) for row in rows[key]],
            count,
            named.get(key, ()),
        )
        for key, (count, _) in lengths.items()
        if key in rooms and rows[key]
    }


def _readable(palace: Palace, keys: Collection[Key]) -> DrawerQuerySet:
    """Rows of these conversations, and perhaps of some others."""
    mined = Drawer.objects.within(palace).kept().exclude(mined_at=None)
    return mined.filter(
        source__in={source for source, _ in keys},
        conversation__in={conversation for _, conversation in keys},
    )


class _Row(NamedTuple):
    pk: int
    role: str
    speaker: str
    text: str
    said_at: datetime

    def said(self, vector: Vector | None) -> Said:
        whole = len(self.text) <= READ_CHARS
        return Said(self.role, self.speaker, self.text[:READ_CHARS], whole, vector, self.pk)


def _rows(drawers: DrawerQuerySet, lasts: Mapping[Key, int]) -> Mapping[Key, list[_Row]]:
    read = Q(position__lt=HEAD)
    for (source, conversation), last in lasts.items():
        if last >= HEAD:
            behind = max(HEAD, last + 1 - TAIL)
            read |= Q(source=source, conversation=conversation, position__gte=behind)
    found: defaultdict[Key, list[_Row]] = defaultdict(list)
    columns = ("pk", "role", "speaker", "beginning", "said_at")
    rows = drawers.filter(read).annotate(beginning=Left("text", READ_CHARS + 1)).in_order()
    for source, conversation, *row in rows.values_list("source", "conversation", *columns):
        found[source, conversation].append(_Row(*row))
    return found


def _looked_at(rows: Sequence[_Row]) -> list[int]:
    """Messages from the beginning, the end, and in even steps between."""
    keys = [row.pk for row in rows if row.role in ("user", "assistant")]
    if len(keys) <= LOOKED_AT:
        return keys
    between, wanted = keys[EDGE:-EDGE], LOOKED_AT - 2 * EDGE
    middle = [between[at * len(between) // wanted] for at in range(wanted)]
    return [*keys[:EDGE], *middle, *keys[-EDGE:]]


def _vectors(palace: Palace, space: EmbeddingSpace, drawers: Sequence[int]) -> Mapping[int, Vector]:
    """Vectors of the drawers' first passages, by drawer key."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT drawer_id, substring(halfvec_send(embedding) FROM 5) FROM palace_passage"
            " WHERE palace_id = %s AND space_id = %s AND drawer_id = ANY(%s) AND ordinal = 0"
            " AND embedding IS NOT NULL",
            [palace.pk, space.pk, list(drawers)],
        )
        return {key: np.frombuffer(sent, ">f2").astype(np.float32) for key, sent in cursor}


def _named(palace: Palace, drawers: DrawerQuerySet) -> Mapping[Key, tuple[str, ...]]:
    mentions = Mention.objects.filter(palace=palace, drawer__in=drawers.order_by().values("pk"))
    counted = mentions.values_list("drawer__source", "drawer__conversation", "entity__name")
    named: defaultdict[Key, dict[str, None]] = defaultdict(dict)
    for source, conversation, name, _ in counted.annotate(times=Count("pk")).order_by(
        "-times", "entity__name"
    ):
        if len(named[source, conversation]) < MOST_ENTITIES:
            named[source, conversation][name] = None
    return {key: tuple(names) for key, names in named.items()}


def _material(
    rooms: Sequence[Room],
    rows: Sequence[tuple[Said, datetime]],
    count: int,
    entities: tuple[str, ...],
) -> Material:
    times = [said_at for _, said_at in rows]
    said = [one for one, _ in rows]
    tools = dict.fromkeys(one.speaker for one in said if one.role == "tool" and one.speaker)
    return Material(
        said,
        count,
        min(times),
        max(times),
        title=rooms[0].title,
        agent=next((room.agent for room in rooms if room.agent), ""),
        entities=entities,
        tools=tuple(tools)[:MOST_TOOLS],
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """
    Attributes:
        decisions: What was decided, one sentence each, in order.
        entities: Whom and what it is about, by name.
        tools: What was used, by name.
        model: Which one made it; empty where local rules did.
        vector: Where it is known without embedding the text.
    """

    text: str
    decisions: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    model: str = ""
    vector: Vector | None = field(default=None, compare=False)

    @property
    def made_by(self) -> str:
        return Episode.Maker.MODEL if self.model else Episode.Maker.LOCAL

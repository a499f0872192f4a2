"""What an episode is made from: the drawers of a conversation, within bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q
from django.db.models.functions import Left

from palace.models import Drawer, Mention, Palace, Room
from palace.models.hierarchy import DrawerQuerySet

Key = tuple[str, str]  # A conversation's source, and its id there.

# Of a longer conversation so many messages from its beginning and from its end are read, and of a
# longer message so many characters.
HEAD = 200
TAIL = 200
READ_CHARS = 4_000
MOST_ENTITIES = 12
MOST_TOOLS = 20


@dataclass(frozen=True, slots=True)
class Said:
    """One message, as much of it as is read.

    Attributes:
        whole: Whether that is all of it.
    """

    role: str
    speaker: str
    text: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
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


def gather(palace: Palace, rooms: Mapping[Key, Sequence[Room]]) -> dict[Key, Material]:
    """The material of conversations, of those that have any, in a few questions.

    Args:
        rooms: Those of each conversation, the oldest first.
    """
    drawers = _readable(palace, rooms)
    counted = drawers.order_by().values_list("source", "conversation")
    lengths = {
        (source, conversation): (count, last)
        for source, conversation, count, last in counted.annotate(Count("pk"), Max("position"))
    }
    said = _said(drawers, {key: last for key, (_, last) in lengths.items()})
    named = _named(palace, drawers)
    return {
        key: _material(rooms[key], said[key], count, named.get(key, ()))
        for key, (count, _) in lengths.items()
        if key in rooms and said[key]
    }


def _readable(palace: Palace, keys: Collection[Key]) -> DrawerQuerySet:
    """What episodes of these conversations are made from, and perhaps of some others."""
    mined = Drawer.objects.within(palace).kept().exclude(mined_at=None)
    return mined.filter(
        source__in={source for source, _ in keys},
        conversation__in={conversation for _, conversation in keys},
    )


Row = tuple[Said, datetime]


def _said(drawers: DrawerQuerySet, lasts: Mapping[Key, int]) -> Mapping[Key, list[Row]]:
    read = Q(position__lt=HEAD)
    for (source, conversation), last in lasts.items():
        if last >= HEAD:
            behind = max(HEAD, last + 1 - TAIL)
            read |= Q(source=source, conversation=conversation, position__gte=behind)
    rows = drawers.filter(read).annotate(beginning=Left("text", READ_CHARS + 1))
    found: defaultdict[Key, list[Row]] = defaultdict(list)
    for source, conversation, role, speaker, text, said_at in rows.in_order().values_list(
        "source", "conversation", "role", "speaker", "beginning", "said_at"
    ):
        said = Said(role, speaker, text[:READ_CHARS], len(text) <= READ_CHARS)
        found[source, conversation].append((said, said_at))
    return found


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
    rooms: Sequence[Room], rows: Sequence[Row], count: int, entities: tuple[str, ...]
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

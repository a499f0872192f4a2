"""The connections of an entity, facts whose object is another entity, as a graph of two steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from django.db.models import F, Q

from palace.models import Entity, Fact, FactQuerySet, about_any
from palace.queries.facts import relations
from palace.views.shared.palace_tags import in_words

Key = TypeVar("Key", bound=Hashable)
# How many neighbours are drawn, how many of each one's neighbours, and how many facts are read.
NEIGHBOURS_SHOWN, BEYOND_SHOWN, EDGES_READ = 15, 2, 600
LINKS_SHOWN = 60
FACTS_SHOWN = 3
# Units of the drawing: the hub on the left, its neighbours and theirs in a column each.
WIDTH, ROW = 620, 42
HUB_X, HUB_WIDTH, HUB_HEIGHT = 4, 96, 40
COLUMNS = (178, 420)
GAP = 11
# The characters that fit beside a dot, and into the hub.
NAME_SIGNS, HUB_SIGNS = 24, 12


@dataclass(frozen=True, slots=True)
class Node:
    """An entity on the drawing, with its dot at `x`, `y`.

    Attributes:
        facts: About it and the one it hangs on, latest first.
        spoke: The path between the two, from subject to object.
    """

    entity: Entity
    facts: tuple[Fact, ...]
    x: int
    y: int
    spoke: str

    @property
    def name(self) -> str:
        return _cut(self.entity.display_name, NAME_SIGNS)

    @property
    def said(self) -> str:
        """The predicate of the latest fact, and how many more there are."""
        more = f" +{len(self.facts) - 1}" if len(self.facts) > 1 else ""
        return _cut(in_words(self.facts[0].predicate), NAME_SIGNS - len(more)) + more

    @property
    def latest(self) -> tuple[Fact, ...]:
        return self.facts[:FACTS_SHOWN]

    @property
    def left_out(self) -> int:
        return max(len(self.facts) - FACTS_SHOWN, 0)

    @property
    def text_x(self) -> int:
        return self.x + GAP

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The area one can click: left, top, width and height."""
        right = COLUMNS[1] - GAP if self.x == COLUMNS[0] else WIDTH
        return self.x - GAP, self.y - ROW // 2 + 1, right - self.x, ROW - 2


@dataclass(frozen=True, slots=True)
class Neighbour:
    """
    Attributes:
        beyond: Its own neighbours that are none of the hub.
        more: How many others it has.
    """

    node: Node
    beyond: tuple[Node, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Link:
    """A fact between two neighbours of the hub."""

    fact: Fact
    path: str


@dataclass(frozen=True, slots=True)
class Connections:
    """
    Attributes:
        has_more: Whether the drawing leaves out other neighbours.
    """

    entity: Entity
    neighbours: tuple[Neighbour, ...]
    links: tuple[Link, ...]
    height: int
    has_more: bool

    width = WIDTH
    hub_box = (HUB_X, HUB_WIDTH, HUB_HEIGHT)

    @property
    def nodes(self) -> Iterator[Node]:
        for neighbour in self.neighbours:
            yield neighbour.node
            yield from neighbour.beyond

    @property
    def hub_name(self) -> str:
        return _cut(self.entity.display_name, HUB_SIGNS)

    @property
    def hub(self) -> tuple[int, int]:
        """Its middle."""
        return HUB_X + HUB_WIDTH // 2, self.height // 2

    @property
    def hub_top(self) -> int:
        return self.hub[1] - HUB_HEIGHT // 2


def connections_of(entity: Entity, facts: FactQuerySet) -> Connections:
    """Its neighbours, theirs, and the links between them, among `facts`, in two queries."""
    said = _facts_by_other(entity.pk, relations(entity, facts)[:EDGES_READ])
    weights = {key: len(found) for key, found in said.items()}
    edges = _edges_of(facts, entity, _largest(weights))
    inner = [fact for fact in edges if {fact.subject_id, fact.object_entity_id} <= said.keys()]
    pairs = [(fact.subject_id, fact.object_entity_id or 0) for fact in inner]
    keys = best_connected(weights, pairs, at_most=NEIGHBOURS_SHOWN)
    beyond = _beyond(keys, [fact for fact in edges if fact not in inner])
    middles = rows_of([min(len(beyond[key]), BEYOND_SHOWN) for key in keys])
    height = max(sum(max(min(len(beyond[key]), BEYOND_SHOWN), 1) for key in keys), 2) * ROW
    hub = (HUB_X + HUB_WIDTH, height // 2)
    neighbours = tuple(
        _neighbour(entity, hub, said[key], beyond[key], y)
        for key, y in zip(keys, middles, strict=True)
    )
    return Connections(
        entity=entity,
        neighbours=neighbours,
        links=_links(inner[:LINKS_SHOWN], dict(zip(keys, middles, strict=True))),
        height=height,
        has_more=len(said) > len(keys),
    )


def _largest(weights: Mapping[Key, int]) -> list[Key]:
    return sorted(weights, key=lambda key: -weights[key])[:NEIGHBOURS_SHOWN]


def _facts_by_other(key: int, facts: FactQuerySet) -> dict[int, list[Fact]]:
    """Facts about the entity of this key by the key of the other one, latest first."""
    said: defaultdict[int, list[Fact]] = defaultdict(list)
    for fact in facts:
        said[_other(key, fact).pk].append(fact)
    return said


def _edges_of(facts: FactQuerySet, hub: Entity, keys: Collection[int]) -> list[Fact]:
    """Facts that connect these entities with others than the hub, the latest first."""
    if not keys:
        return []
    found = facts.filter(about_any(keys), object_entity__isnull=False)
    found = found.exclude(Q(subject=F("object_entity")) | Q(subject=hub) | Q(object_entity=hub))
    found = found.select_related("subject", "object_entity")
    return list(found.order_by("-recorded_at", "-pk")[:EDGES_READ])


def _beyond(keys: Sequence[int], edges: Sequence[Fact]) -> dict[int, list[list[Fact]]]:
    """Of each neighbour the facts about it and each further entity, which is drawn only once."""
    beyond: dict[int, list[list[Fact]]] = {key: [] for key in keys}
    hangs_on: dict[int, tuple[int, list[Fact]]] = {}
    for fact in edges:
        key = fact.subject_id if fact.subject_id in beyond else fact.object_entity_id
        if key not in beyond:
            continue
        other = _other(key, fact).pk
        if other not in hangs_on:
            hangs_on[other] = (key, [])
            beyond[key].append(hangs_on[other][1])
        if hangs_on[other][0] == key:
            hangs_on[other][1].append(fact)
    return beyond


def rows_of(sizes: Sequence[int]) -> list[int]:
    """The middle of each neighbour, which takes a row for each of its own, and at least one."""
    heights = [max(size, 1) * ROW for size in sizes]
    margin = (2 * ROW - sum(heights)) // 2 if sum(heights) < 2 * ROW else 0
    return [
        margin + end - height // 2 for end, height in zip(accumulate(heights), heights, strict=True)
    ]


def _neighbour(
    hub: Entity,
    start: tuple[int, int],
    facts: Sequence[Fact],
    beyond: Sequence[Sequence[Fact]],
    y: int,
) -> Neighbour:
    node = _node(hub.pk, start, facts, (COLUMNS[0], y))
    shown = beyond[:BEYOND_SHOWN]
    top = y - (len(shown) - 1) * ROW // 2
    # Beyond the name, which stands right of the dot.
    end = (COLUMNS[1] - 4 * GAP, y)
    further = (
        _node(node.entity.pk, end, each, (COLUMNS[1], top + number * ROW))
        for number, each in enumerate(shown)
    )
    return Neighbour(node, tuple(further), len(beyond) - len(shown))


def _node(key: int, start: tuple[int, int], facts: Sequence[Fact], at: tuple[int, int]) -> Node:
    """The other entity of these facts, at `at`, connected with the one of this key at `start`."""
    dot = (at[0] - 7, at[1])
    first, last = (dot, start) if facts[0].subject_id != key else (start, dot)
    bend = (at[0] - 3 * GAP, at[1])
    spoke = f"M{first[0]} {first[1]}Q{bend[0]} {bend[1]} {last[0]} {last[1]}"
    return Node(_other(key, facts[0]), tuple(facts), *at, spoke)


def _links(facts: Sequence[Fact], middles: Mapping[int, int]) -> tuple[Link, ...]:
    ends = ((fact, fact.subject_id, fact.object_entity_id or 0) for fact in facts)
    return tuple(
        Link(fact, _arc(middles[one], middles[other]))
        for fact, one, other in ends
        if one in middles and other in middles
    )


def _arc(start: int, end: int) -> str:
    """Left of the dots of two neighbours."""
    x = COLUMNS[0]
    return f"M{x} {start}Q{x - 4 * GAP} {(start + end) // 2} {x} {end}"


def _other(key: int, fact: Fact) -> Entity:
    if fact.subject_id == key and fact.object_entity is not None:
        return fact.object_entity
    return fact.subject


def _cut(text: str, signs: int) -> str:
    return text if len(text) <= signs else f"{text[: signs - 1].rstrip()}…"


def best_connected(
    weights: Mapping[Key, int], links: Collection[tuple[Key, Key]], *, at_most: int
) -> list[Key]:
    """The `at_most` keys of the largest weight, linked ones next to each other."""
    best = sorted(weights, key=lambda key: -weights[key])[:at_most]
    beside: dict[Key, list[Key]] = {key: [] for key in best}
    for one, other in links:
        if one in beside and other in beside:
            beside[one].append(other)
            beside[other].append(one)
    ordered: dict[Key, None] = {}
    for key in best:
        _walk(key, beside, ordered)
    return list(ordered)


def _walk(start: Key, beside: Mapping[Key, Sequence[Key]], ordered: dict[Key, None]) -> None:
    waiting = [start]
    while waiting:
        key = waiting.pop()
        if key not in ordered:
            ordered[key] = None
            waiting += reversed(beside[key])

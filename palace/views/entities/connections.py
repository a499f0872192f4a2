"""The connections of an entity, facts whose object is another entity, as a drawn graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import F

from palace.knowledge.facts import relations
from palace.models import Entity, Fact, FactQuerySet
from palace.queries.facts import display_name
from palace.templatetags.fact_tags import in_words

WIDTH = 344
ROW = 44
HUB_WIDTH = 76
HUB_HEIGHT = 40
# The distance from the middle to a node's dot, and from the dot to its name.
REACH = 64
GAP = 9
# The characters that fit beside a dot, and into the hub.
NAME_SIGNS = 12
HUB_SIGNS = 9
Key = TypeVar("Key", bound=Hashable)
# How many neighbours are drawn, and how many facts are read to find them.
NEIGHBOURS_SHOWN = 25
EDGES_READ = 600
LINKS_SHOWN = 60
FACTS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Neighbour:
    """
    Attributes:
        facts: The facts about both entities, latest first.
        node: Its position in the drawing.
        spoke: The path between hub and node, from subject to object.
    """

    entity: Entity
    facts: tuple[Fact, ...]
    node: Node[int]
    spoke: str

    @property
    def name(self) -> str:
        return _cut(display_name(self.entity), NAME_SIGNS)

    @property
    def latest(self) -> tuple[Fact, ...]:
        return self.facts[:FACTS_SHOWN]

    @property
    def left_out(self) -> int:
        return max(len(self.facts) - FACTS_SHOWN, 0)

    @property
    def said(self) -> str:
        """The predicate of the latest fact, and how many more there are."""
        more = f" +{len(self.facts) - 1}" if len(self.facts) > 1 else ""
        return _cut(in_words(self.facts[0].predicate), NAME_SIGNS + 2 - len(more)) + more


@dataclass(frozen=True, slots=True)
class Link:
    """A fact between two neighbours."""

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
    layout: Layout[int]
    has_more: bool

    width = WIDTH
    hub_width = HUB_WIDTH
    hub_height = HUB_HEIGHT

    @property
    def hub_name(self) -> str:
        return _cut(display_name(self.entity), HUB_SIGNS)

    @property
    def hub_x(self) -> int:
        return self.layout.hub[0] - HUB_WIDTH // 2

    @property
    def hub_y(self) -> int:
        return self.layout.hub[1] - HUB_HEIGHT // 2


def connections_of(entity: Entity, facts: FactQuerySet) -> Connections:
    """Its neighbours and the links between them, among `facts`, in two queries."""
    said = _said(entity, facts)
    weights = {key: len(found) for key, found in said.items()}
    best = sorted(weights, key=lambda key: -weights[key])[:NEIGHBOURS_SHOWN]
    between = _between(facts, best)
    pairs = [(fact.subject_id, fact.object_entity_id or 0) for fact in between]
    layout = laid_out(best_connected(weights, pairs, at_most=NEIGHBOURS_SHOWN))
    return Connections(
        entity=entity,
        neighbours=tuple(_neighbour(entity, node, said[node.key], layout) for node in layout.nodes),
        links=_links(between, layout),
        layout=layout,
        has_more=len(said) > len(best),
    )


def _said(entity: Entity, facts: FactQuerySet) -> dict[int, list[Fact]]:
    """The facts about both entities by the neighbour's key, latest first."""
    said: defaultdict[int, list[Fact]] = defaultdict(list)
    for fact in relations(entity, facts)[:EDGES_READ]:
        said[_other(entity, fact).pk].append(fact)
    return said


def _between(facts: FactQuerySet, keys: Sequence[int]) -> list[Fact]:
    found = facts.filter(subject__in=keys, object_entity__in=keys)
    found = found.exclude(subject=F("object_entity")).select_related("subject", "object_entity")
    return list(found.order_by("-recorded_at", "-pk")[:LINKS_SHOWN])


def _neighbour(
    entity: Entity, node: Node[int], facts: Sequence[Fact], layout: Layout[int]
) -> Neighbour:
    inwards = facts[0].subject_id != entity.pk
    spoke = layout.spoke(node, inwards=inwards)
    return Neighbour(_other(entity, facts[0]), tuple(facts), node, spoke)


def _links(facts: Sequence[Fact], layout: Layout[int]) -> tuple[Link, ...]:
    nodes = {node.key: node for node in layout.nodes}
    return tuple(
        Link(fact, layout.chord(nodes[fact.subject_id], nodes[fact.object_entity_id]))
        for fact in facts
        if fact.object_entity_id is not None
    )


def _other(entity: Entity, fact: Fact) -> Entity:
    if fact.subject_id == entity.pk and fact.object_entity is not None:
        return fact.object_entity
    return fact.subject


def _cut(text: str, signs: int) -> str:
    return text if len(text) <= signs else f"{text[: signs - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class Node(Generic[Key]):
    """
    Attributes:
        is_left: Whether it is in the left column.
        x, y: The position of its dot.
    """

    key: Key
    is_left: bool
    x: int
    y: int

    @property
    def text_x(self) -> int:
        return self.x - GAP if self.is_left else self.x + GAP

    @property
    def box_x(self) -> int:
        """The left edge of the clickable area, which is as wide as its column."""
        return 0 if self.is_left else self.x - GAP

    @property
    def box_width(self) -> int:
        return self.x + GAP if self.is_left else WIDTH - self.x + GAP

    @property
    def box_y(self) -> int:
        return self.y - ROW // 2 + 2


@dataclass(frozen=True, slots=True)
class Layout(Generic[Key]):
    nodes: tuple[Node[Key], ...]
    height: int

    @property
    def hub(self) -> tuple[int, int]:
        return WIDTH // 2, self.height // 2

    def spoke(self, node: Node[Key], *, inwards: bool) -> str:
        """The path between hub and node, from subject to object."""
        side = -1 if node.is_left else 1
        x, y = self.hub
        at_hub = (x + side * _edge_of_hub(node.y - y), y + _side_of_hub(node.y - y))
        at_node = (node.x - side * 6, node.y)
        bend = (node.x - side * 26, node.y)
        first, last = (at_node, at_hub) if inwards else (at_hub, at_node)
        return f"M{first[0]} {first[1]}Q{bend[0]} {bend[1]} {last[0]} {last[1]}"

    def chord(self, one: Node[Key], other: Node[Key]) -> str:
        """The path between two nodes, around the hub where they are in one column."""
        if one.is_left == other.is_left:
            inner = one.x + (34 if one.is_left else -34)
            return f"M{one.x} {one.y}Q{inner} {(one.y + other.y) // 2} {other.x} {other.y}"
        return f"M{one.x} {one.y}L{other.x} {other.y}"


def _edge_of_hub(distance: int) -> int:
    """The distance from the middle of the hub to the start of a spoke: beside, above or below."""
    return HUB_WIDTH // 2 if abs(distance) <= ROW else HUB_WIDTH // 4


def _side_of_hub(distance: int) -> int:
    if abs(distance) <= ROW:
        return 0
    return HUB_HEIGHT // 2 if distance > 0 else -HUB_HEIGHT // 2


def laid_out(keys: Sequence[Key]) -> Layout[Key]:
    """Two columns from the top, in the order given; the right one may be longer by one."""
    half = len(keys) // 2
    right, left = keys[: len(keys) - half], keys[len(keys) - half :]
    height = max(len(right), 2) * ROW
    nodes = [*_column(right, height, is_left=False), *_column(left, height, is_left=True)]
    return Layout(tuple(nodes), height)


def _column(keys: Sequence[Key], height: int, *, is_left: bool) -> list[Node[Key]]:
    x = WIDTH // 2 + (-REACH if is_left else REACH)
    top = (height - len(keys) * ROW) // 2 + ROW // 2
    return [Node(key, is_left, x, top + number * ROW) for number, key in enumerate(keys)]


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

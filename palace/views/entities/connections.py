"""The connections of an entity: facts whose object is another entity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F

from palace.knowledge.facts.graph import relations
from palace.models import Entity, Fact
from palace.models.facts import FactQuerySet
from palace.queries.facts import display_name
from palace.templatetags.fact_tags import in_words
from palace.views.entities.graph_layout import (
    HUB_HEIGHT,
    HUB_SIGNS,
    HUB_WIDTH,
    NAME_SIGNS,
    WIDTH,
    Layout,
    Node,
    best_connected,
    laid_out,
)

# So many are drawn, and so many facts are read to find them.
NEIGHBOURS_SHOWN = 25
EDGES_READ = 600
LINKS_SHOWN = 60
FACTS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Neighbour:
    """
    Attributes:
        facts: What is said of the two of them, latest first.
        node: Where it stands in the drawing.
        spoke: The path to it, in the direction of what is said.
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
        has_more: Whether there are others that are not drawn.
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
    """By the neighbour's key, the facts about both, latest first."""
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

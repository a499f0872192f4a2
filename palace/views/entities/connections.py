"""The connections of an entity, facts whose object is another entity, as a graph of two steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, chain, starmap
from typing import NamedTuple, TypeVar

from django.db.models import F, Q
from django.utils.safestring import SafeString, mark_safe

from palace.models import Entity, Fact, FactQuerySet, about_any
from palace.queries.facts import entities_of_keys, facts_of_keys, relations
from palace.views.shared.palace_tags import icon, in_words, kind_name, period, second_person
from settings_app.row_tags import counted, grouped

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


class Edge(NamedTuple):
    """A fact between two entities, all by key."""

    fact: int
    subject: int
    object: int

    def other(self, key: int) -> int:
        return self.object if self.subject == key else self.subject


@dataclass(frozen=True, slots=True)
class Node:
    """An entity on the drawing, with its dot at `x`, `y`.

    Attributes:
        latest: Of the facts about it and the one it hangs on, the latest first.
        count: How many such facts there are.
        spoke: The path between the two, from subject to object.
    """

    entity: Entity
    latest: tuple[Fact, ...]
    count: int
    x: int
    y: int
    spoke: str

    @property
    def name(self) -> str:
        return _cut(self.entity.display_name, NAME_SIGNS)

    @property
    def said(self) -> str:
        """The predicate of the latest fact, and how many more there are."""
        more = f" +{self.count - 1}" if self.count > 1 else ""
        return _cut(in_words(self.latest[0].predicate), NAME_SIGNS - len(more)) + more

    @property
    def left_out(self) -> int:
        return self.count - len(self.latest)

    @property
    def text_x(self) -> int:
        return self.x + GAP

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The area one can click: left, top, width and height."""
        right = COLUMNS[1] - GAP if self.x == COLUMNS[0] else WIDTH
        return self.x - GAP, self.y - ROW // 2 + 1, right - self.x, ROW - 2

    def link(self, query: str) -> str:
        """The address of the entity."""
        return escape(f"{self.entity.get_absolute_url()}{query}")

    def drawn(self, query: str) -> str:
        kind, latest = kind_name(self.entity.kind), second_person(self.latest[0].text)
        left, top, width, height = self.box
        label = escape(f"{self.name}, {self.said}, {kind}: {latest}")
        return (
            f'<a class="node" href="{self.link(query)}" aria-label="{label}">\n'
            f'<rect class="area" x="{left}" y="{top}" width="{width}" height="{height}" rx="6">'
            f'</rect>\n<circle cx="{self.x}" cy="{self.y}" r="4.5"></circle>\n'
            f'<text class="name" x="{self.text_x}" y="{self.y}" dy="-1">{escape(self.name)}</text>'
            f' <text class="relation" x="{self.text_x}" y="{self.y}" dy="13">{escape(self.said)}'
            "</text>\n</a>\n"
        )


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

    def relation(self, query: str) -> str:
        """Its place in the list that says what the drawing shows."""
        node, more, others = self.node, "", ""
        if node.left_out:
            more = f'<p class="muted">and {grouped(node.left_out)} more</p>\n'
        if self.more:
            others = f'<p class="beyond muted">and {counted(self.more, "connection")} more</p>\n'
        further = "".join(_further(each, query) for each in self.beyond)
        return (
            f'<li>\n<a class="relation-name" href="{node.link(query)}">{icon(node.entity.kind)}'
            f"<span>{escape(node.entity.display_name)}</span></a>\n"
            f"{''.join(map(_stated, node.latest))}{more}{further}{others}</li>\n"
        )


def _stated(fact: Fact) -> str:
    text = escape(second_person(fact.text))
    since = f'<span class="muted">{period(fact)}</span>'
    return f'<p><a href="{fact.get_absolute_url()}">{text}</a> {since}</p>\n'


def _further(node: Node, query: str) -> str:
    name, latest = node.entity.display_name, second_person(node.latest[0].text)
    return (
        f'<p class="beyond"><a href="{node.link(query)}">{escape(name)}</a>'
        f' <span class="muted">{escape(latest)}</span></p>\n'
    )


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
        query: Of the addresses of entities, so that they are shown on the same day.
    """

    entity: Entity
    neighbours: tuple[Neighbour, ...]
    links: tuple[Link, ...]
    height: int
    has_more: bool
    query: str = ""

    width = WIDTH
    hub_box = (HUB_X, HUB_WIDTH, HUB_HEIGHT)

    @property
    def nodes(self) -> Iterator[Node]:
        for neighbour in self.neighbours:
            yield neighbour.node
            yield from neighbour.beyond

    @property
    def drawn_nodes(self) -> SafeString:
        """The nodes in one piece, for a page has forty; `relations` likewise."""
        return mark_safe(  # noqa: S308 - names and texts are escaped.
            "".join(node.drawn(self.query) for node in self.nodes)
        )

    @property
    def relations(self) -> SafeString:
        return mark_safe(  # noqa: S308 - names and texts are escaped.
            "".join(each.relation(self.query) for each in self.neighbours)
        )

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


def connections_of(entity: Entity, facts: FactQuerySet, *, query: str = "") -> Connections:
    """Its neighbours, theirs, and the links between them, among `facts`, in four queries.

    All edges are read as keys, and then the rows of the facts that are drawn.
    """
    said = _by_other(entity.pk, _edges(relations(entity, facts)))
    weights = {key: len(edges) for key, edges in said.items()}
    beside = _edges_beside(facts, entity, _largest(weights))
    inner = [edge for edge in beside if {edge.subject, edge.object} <= said.keys()]
    outer = [edge for edge in beside if not {edge.subject, edge.object} <= said.keys()]
    pairs = [(edge.subject, edge.object) for edge in inner]
    keys = best_connected(weights, pairs, at_most=NEIGHBOURS_SHOWN)
    links = [edge for edge in inner[:LINKS_SHOWN] if {edge.subject, edge.object} <= set(keys)]
    beyond = _beyond(keys, outer)
    shown = {key: beyond[key][:BEYOND_SHOWN] for key in keys}
    drawn = [*(said[key] for key in keys), *chain(*shown.values())]
    drawing = _drawing(entity, [*links, *chain(*(edges[:FACTS_SHOWN] for edges in drawn))])
    sizes = [len(shown[key]) for key in keys]
    height = max(sum(max(size, 1) for size in sizes), 2) * ROW
    hub = _Start(entity.pk, HUB_X + HUB_WIDTH, height // 2)
    middles = dict(zip(keys, rows_of(sizes), strict=True))
    return Connections(
        entity=entity,
        neighbours=tuple(
            Neighbour(
                drawing.node(hub, said[key], COLUMNS[0], middles[key]),
                drawing.beyond(key, shown[key], middles[key]),
                len(beyond[key]) - len(shown[key]),
            )
            for key in keys
        ),
        links=tuple(drawing.link(edge, middles) for edge in links),
        height=height,
        has_more=len(said) > len(keys),
        query=query,
    )


def _edges(facts: FactQuerySet) -> list[Edge]:
    rows = facts.order_by("-recorded_at", "-pk")
    return list(starmap(Edge, rows.values_list("pk", "subject", "object_entity")[:EDGES_READ]))


def _edges_beside(facts: FactQuerySet, hub: Entity, keys: Collection[int]) -> list[Edge]:
    """Those that connect these entities with others than the hub, the latest first."""
    if not keys:
        return []
    found = facts.filter(about_any(keys), object_entity__isnull=False)
    own = Q(subject=F("object_entity")) | Q(subject=hub) | Q(object_entity=hub)
    return _edges(found.exclude(own))


def _largest(weights: Mapping[Key, int]) -> list[Key]:
    return sorted(weights, key=lambda key: -weights[key])[:NEIGHBOURS_SHOWN]


def _by_other(key: int, edges: Iterable[Edge]) -> dict[int, list[Edge]]:
    """Edges of the entity of this key by the key of the other one, latest first."""
    by_other: defaultdict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        by_other[edge.other(key)].append(edge)
    return by_other


def _beyond(keys: Sequence[int], edges: Iterable[Edge]) -> dict[int, list[list[Edge]]]:
    """Of each neighbour the edges to each further entity, which is drawn only once."""
    beyond: dict[int, list[list[Edge]]] = {key: [] for key in keys}
    hangs_on: dict[int, tuple[int, list[Edge]]] = {}
    for edge in edges:
        key = edge.subject if edge.subject in beyond else edge.object
        if key not in beyond:
            continue
        other = edge.other(key)
        if other not in hangs_on:
            hangs_on[other] = (key, [])
            beyond[key].append(hangs_on[other][1])
        if hangs_on[other][0] == key:
            hangs_on[other][1].append(edge)
    return beyond


def rows_of(sizes: Sequence[int]) -> list[int]:
    """The middle of each neighbour, which takes a row for each of its own, and at least one."""
    heights = [max(size, 1) * ROW for size in sizes]
    margin = (2 * ROW - sum(heights)) // 2 if sum(heights) < 2 * ROW else 0
    return [
        margin + end - height // 2 for end, height in zip(accumulate(heights), heights, strict=True)
    ]


def _drawing(hub: Entity, edges: Collection[Edge]) -> _Drawing:
    """What these edges name; not of the facts of the day alone: one may be retired meanwhile."""
    keys = {key for edge in edges for key in (edge.subject, edge.object)} - {hub.pk}
    others = entities_of_keys(hub.palace, keys)
    return _Drawing(facts_of_keys(hub.palace, {edge.fact for edge in edges}), others, hub)


class _Start(NamedTuple):
    """Where a spoke begins: the key of its entity, and its end there."""

    key: int
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class _Drawing:
    """
    Attributes:
        rows: The facts that are named, by key.
        others: Likewise their entities, but the hub.
    """

    rows: Mapping[int, Fact]
    others: Mapping[int, Entity]
    hub: Entity

    def node(self, start: _Start, edges: Sequence[Edge], x: int, y: int) -> Node:
        """The other entity of these edges, connected with the one at `start`."""
        latest = tuple(self.rows[edge.fact] for edge in edges[:FACTS_SHOWN])
        dot, end = (x - 7, y), (start.x, start.y)
        begins_there = latest[0].subject_id == start.key
        first, last = (end, dot) if begins_there else (dot, end)
        bend = (x - 3 * GAP, y)
        spoke = f"M{first[0]} {first[1]}Q{bend[0]} {bend[1]} {last[0]} {last[1]}"
        # One that was merged into the hub meanwhile is gone.
        entity = self.others.get(edges[0].other(start.key), self.hub)
        return Node(entity, latest, len(edges), x, y, spoke)

    def beyond(self, key: int, shown: Sequence[Sequence[Edge]], y: int) -> tuple[Node, ...]:
        """The neighbours of a neighbour, beside it in a column of their own."""
        top = y - (len(shown) - 1) * ROW // 2
        # Beyond the name, which stands right of the dot.
        start = _Start(key, COLUMNS[1] - 4 * GAP, y)
        return tuple(
            self.node(start, edges, COLUMNS[1], top + number * ROW)
            for number, edges in enumerate(shown)
        )

    def link(self, edge: Edge, middles: Mapping[int, int]) -> Link:
        return Link(self.rows[edge.fact], _arc(middles[edge.subject], middles[edge.object]))


def _arc(start: int, end: int) -> str:
    """Left of the dots of two neighbours."""
    x = COLUMNS[0]
    return f"M{x} {start}Q{x - 4 * GAP} {(start + end) // 2} {x} {end}"


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

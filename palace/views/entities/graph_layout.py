"""The layout of an entity's connections: a hub, and two columns around it.

In the drawing's own units, which are a phone's pixels: it is as wide as a phone's page, and a
name takes one line of it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

WIDTH = 344
ROW = 44
HUB_WIDTH = 76
HUB_HEIGHT = 40
# A node's dot is so far from the middle, and its name begins so far behind the dot.
REACH = 64
GAP = 9
# As many signs as fit beside a dot, and into the hub.
NAME_SIGNS = 12
HUB_SIGNS = 9

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Node(Generic[Key]):
    """
    Attributes:
        is_left: Whether it stands in the column on the left.
        x, y: Where its dot is.
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
        """Where the clickable area begins; it is as wide as its column."""
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
    """How far from the middle of the hub a spoke begins: at its side, or above or below it."""
    return HUB_WIDTH // 2 if abs(distance) <= ROW else HUB_WIDTH // 4


def _side_of_hub(distance: int) -> int:
    if abs(distance) <= ROW:
        return 0
    return HUB_HEIGHT // 2 if distance > 0 else -HUB_HEIGHT // 2


def laid_out(keys: Sequence[Key]) -> Layout[Key]:
    """Half of them on each side, from the top, in the order given; the odd one on the right."""
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

"""The rows of a replay: what is active after each statement, with indexes to look it up."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from language.facts import KnownFact
from palace.knowledge.facts.fact_chains import link_between
from palace.knowledge.facts.fact_writer import StatementOutcome
from palace.knowledge.facts.judge import CLOSEST
from palace.knowledge.facts.row_conversion import known_fact_of
from palace.models import Fact
from palace.storage.indexing.fact_vectors import Vector

Stretch = tuple[int, int, int]  # A drawer's key, start and end.


@dataclass
class Board:
    """The rows in memory while statements are judged one after the other.

    Attributes:
        rows: Every row that was opened, in order; a row's key is its position, from 1.
        known: The rows as plain facts; the fields that rules read do not change later.
        words: The evidence of each row.
        said: The statements that opened, repeated or refined each row.
        stored: The stored facts of rows that come from no statement.
        lines: The outcome of each statement, by its key.
        overruled: Keys of statements whose judgement by a model could not be followed.
        vector_of: The vector of a text, computed once.
    """

    rows: list[Fact] = field(default_factory=list)
    known: list[KnownFact] = field(default_factory=list)
    words: dict[int, dict[Stretch, None]] = field(default_factory=lambda: defaultdict(dict))
    said: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    stored: dict[int, Fact] = field(default_factory=dict)
    lines: dict[int, StatementOutcome | None] = field(default_factory=dict)
    overruled: set[int] = field(default_factory=set)
    vector_of: Callable[[str], Vector | None] = lambda _text: None
    _active: list[int] = field(default_factory=list)
    _about: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _saying: dict[int, dict[int, None]] = field(default_factory=lambda: defaultdict(dict))
    _vectors: VectorTable = field(default_factory=lambda: VectorTable())

    def put(self, row: Fact) -> None:
        self.rows.append(row)
        row.pk = len(self.rows)
        self.known.append(known_fact_of(row))
        self._vectors.append(self.vector_of(row.text))
        self.update_index(row)

    def update_index(self, row: Fact) -> None:
        """Update the index after a row was opened or closed."""
        change = _insert if row.retired_at is None else _remove
        change(self._active, row.pk)
        change(self._about[row.subject.slug], row.pk)

    def append_to_chain(self, row: Fact, replaced: Fact) -> None:
        """Make a replaced row reachable from the row that took its place."""
        link = link_between(_chain(row), _chain(replaced))
        if link is not None:
            self.rows[link - 1].supersedes = replaced

    def add_said(self, row: Fact, statements: Iterable[int]) -> None:
        """Record that statements opened, repeated or refined a row."""
        for statement in statements:
            self.said[row.pk].add(statement)
            self._saying[statement][row.pk] = None

    def said_by(self, statement: int | None) -> list[Fact]:
        """The rows that a statement opened, repeated or refined, in order."""
        return [self.rows[key - 1] for key in sorted(self._saying.get(statement or 0, ()))]

    def rests_on(self, row: Fact, drawers: Collection[int]) -> bool:
        """Whether the evidence of a row is in one of these drawers, given by key."""
        return any(drawer in drawers for drawer, _start, _end in self.words.get(row.pk, ()))

    def active(self) -> Iterator[Fact]:
        """Active rows, latest statement first."""
        return (self.rows[key - 1] for key in reversed(self._active))

    def active_about(self, slug: str) -> Iterator[Fact]:
        """Active rows about subjects with this slug, latest statement first."""
        return (self.rows[key - 1] for key in reversed(self._about.get(slug, [])))

    def closest(self, vector: Vector | None) -> list[tuple[Fact, float]]:
        """The active rows closest in meaning, best first, with their cosines."""
        found = self._vectors.closest(vector, self._active) if vector is not None else []
        return [(self.rows[key - 1], cosine) for key, cosine in found]

    def known_fact(self, row: Fact) -> KnownFact:
        return self.known[row.pk - 1]


class VectorTable:
    """Vectors of rows in one array, to compare one vector with all in one product."""

    def __init__(self) -> None:
        self._array: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._has = np.zeros(0, bool)
        self._count = 0

    def append(self, vector: Vector | None) -> None:
        if vector is not None and not self._array.shape[1]:
            self._array = np.zeros((len(self._has), len(vector)), np.float32)
        if self._count == len(self._has):
            more = max(64, self._count)
            self._array = np.pad(self._array, ((0, more), (0, 0)))
            self._has = np.pad(self._has, (0, more))
        if vector is not None:
            self._array[self._count] = vector
            self._has[self._count] = True
        self._count += 1

    def closest(self, vector: Vector, keys: Sequence[int]) -> list[tuple[int, float]]:
        """Up to `CLOSEST` of these rows, by keys from 1, each with its cosine."""
        places = np.asarray(keys, int) - 1
        places = places[self._has[places]]
        if not len(places):
            return []
        cosines = (self._array[: self._count] @ vector)[places]
        best = np.argsort(-cosines, kind="stable")[:CLOSEST]
        return [(int(places[at]) + 1, float(cosines[at])) for at in best]


def _chain(row: Fact) -> list[int]:
    keys: dict[int, None] = {}
    at: Fact | None = row
    while at is not None and at.pk not in keys:
        keys[at.pk] = None
        at = at.supersedes
    return list(keys)


def _insert(keys: list[int], key: int) -> None:
    at = bisect_left(keys, key)
    if at == len(keys) or keys[at] != key:
        keys.insert(at, key)


def _remove(keys: list[int], key: int) -> None:
    at = bisect_left(keys, key)
    if at < len(keys) and keys[at] == key:
        del keys[at]

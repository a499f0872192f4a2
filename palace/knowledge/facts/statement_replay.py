"""Replay the statements of one scope: judge them in memory, in the order they were said.

Nothing is written here: `palace.knowledge.facts.reconciliation` compares the outcome with the
stored rows.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from operator import attrgetter, itemgetter
from uuid import UUID

from django.db.models import Max

from language.facts import Candidate, Judgement, Known, KnownFact, Thing, Words
from language.slugs import slug_of
from palace.knowledge.facts.fact_writer import Remembered, Writer, close
from palace.knowledge.facts.judge import CLOSEST, OF_SUBJECT, Judge
from palace.knowledge.facts.known_rows import KnownRows, known_fact_of
from palace.knowledge.facts.scope import Scope
from palace.knowledge.facts.statements import candidate_of, decided, messages_of
from palace.models import Drawer, EmbeddingSpace, Entity, Fact, FactEvent, Palace, Statement
from palace.models.facts import FactQuerySet
from palace.models.statements import SaidOrder, at_moment
from palace.storage.indexing.fact_vectors import TextVectors, Vector, VectorTable

# Closed so by a statement, a row is held again where that statement counts no longer.
ENDED_BY = (*Fact.WAS_TRUE, Fact.Fate.CORRECTED)

Stretch = tuple[int, int, int]  # A drawer's key, start and end.


@dataclass
class Board:
    """What is held while statements are judged one after the other.

    Attributes:
        rows: Every row that was opened, in order; a row's key is its place, counted from 1.
        known: The rows as plain facts; what rules read of a row does not change once it is put.
        words: By row the stretches of drawers it rests on.
        said: By row the statements that opened, repeated or refined it.
        stored: By row the stored fact it stands for, where that was not learnt from a statement.
        lines: What became of each statement, by its key.
        vector_of: The vector of a text, computed once.
    """

    rows: list[Fact] = field(default_factory=list)
    known: list[KnownFact] = field(default_factory=list)
    words: dict[int, dict[Stretch, None]] = field(default_factory=lambda: defaultdict(dict))
    said: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    stored: dict[int, Fact] = field(default_factory=dict)
    lines: dict[int, Remembered | None] = field(default_factory=dict)
    vector_of: Callable[[str], Vector | None] = lambda _text: None
    _active: list[int] = field(default_factory=list)
    _about: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _saying: dict[int, dict[int, None]] = field(default_factory=lambda: defaultdict(dict))
    _vectors: VectorTable = field(default_factory=VectorTable)

    def put(self, row: Fact) -> None:
        self.rows.append(row)
        row.pk = len(self.rows)
        self.known.append(known_fact_of(row))
        self._vectors.append(self.vector_of(row.text))
        self.note(row)

    def note(self, row: Fact) -> None:
        """Keep up with whether a row is held."""
        change = _insert if row.retired_at is None else _remove
        change(self._active, row.pk)
        change(self._about[row.subject.slug], row.pk)

    def add_said(self, row: Fact, statements: Iterable[int]) -> None:
        """Note that statements opened, repeated or refined a row."""
        for statement in statements:
            self.said[row.pk].add(statement)
            self._saying[statement][row.pk] = None

    def said_by(self, statement: int | None) -> list[Fact]:
        """The rows that a statement opened, repeated or refined, in order."""
        return [self.rows[key - 1] for key in sorted(self._saying.get(statement or 0, ()))]

    def active(self) -> Iterator[Fact]:
        """Those said last first."""
        return (self.rows[key - 1] for key in reversed(self._active))

    def active_about(self, slug: str) -> Iterator[Fact]:
        """Those about the subjects of this slug, said last first."""
        return (self.rows[key - 1] for key in reversed(self._about.get(slug, [])))

    def closest(self, vector: Vector | None) -> list[tuple[Fact, float]]:
        """The active rows that are closest by meaning, the closest first, with their cosines."""
        if vector is None:
            return []
        found = self._vectors.closest(vector, self._active, limit=CLOSEST)
        return [(self.rows[key - 1], cosine) for key, cosine in found]

    def known_fact(self, row: Fact) -> KnownFact:
        return self.known[row.pk - 1]


def _insert(keys: list[int], key: int) -> None:
    at = bisect_left(keys, key)
    if at == len(keys) or keys[at] != key:
        keys.insert(at, key)


def _remove(keys: list[int], key: int) -> None:
    at = bisect_left(keys, key)
    if at < len(keys) and keys[at] == key:
        del keys[at]


def replayed(palace: Palace, space: EmbeddingSpace, agent: str, run: str) -> Board:
    """Judge all statements of a scope in the order in which they were said."""
    board = Board()
    stored = _Stored(palace, agent, run)
    statements = list(live_statements(palace, agent, run))
    candidates = [candidate_of(statement) for statement in statements]
    texts = TextVectors(palace, space)
    texts.add([*stored.texts, *(candidate.text for candidate in candidates)])
    board.vector_of = texts.__getitem__
    player = _Player(palace, space, board, stored, texts)
    steps: list[tuple[SaidOrder, Callable[[], None]]] = list(stored.steps(board))
    for statement, candidate in zip(statements, candidates, strict=True):
        steps.append((statement.order, partial(player.play, statement, candidate)))
    for _, step in sorted(steps, key=itemgetter(0)):
        step()
    return board


def live_statements(palace: Palace, agent: str, run: str) -> Iterable[Statement]:
    """Those whose message is not in the trash."""
    rows = Statement.objects.filter(palace=palace, agent=agent, run=run)
    return rows.filter(drawer__palace=palace, drawer__trashed_at=None).select_related("drawer")


class _Stored:
    """Rows of the scope that no statement accounts for, and what was done to others by hand."""

    def __init__(self, palace: Palace, agent: str, run: str) -> None:
        facts = Fact.objects.within(palace).filter(agent=agent, run=run)
        facts = facts.select_related("subject", "object_entity", "opened_by__drawer")
        self._settled = list(written_otherwise(facts))
        self.texts = [fact.text for fact in self._settled]
        learnt = facts.exclude(opened_by=None)
        self._closed = list(closed_otherwise(learnt))
        self.placed = {
            (fact.opened_by_id, fact.text): (fact.subject, fact.object_entity)
            for fact in learnt.order_by("recorded_at", "pk")
        }

    def steps(self, board: Board) -> Iterable[tuple[SaidOrder, Callable[[], None]]]:
        """Each row enters when it was settled, or said; each deletion takes place when it did."""
        for fact in self._closed:
            if fact.retired_at is not None:
                yield at_moment(fact.retired_at), _closing(board, fact)
        for fact in self._settled:
            yield _entering(fact), _opening(board, fact)


def written_otherwise(facts: FactQuerySet) -> FactQuerySet:
    """Rows by hand, by a program or of old, that are held or were closed by what was said."""
    return facts.filter(opened_by=None).exclude(retired_at__isnull=False, closed_by=None).annotate(
        last_said=Max("evidence__drawer__said_at")
    )  # fmt: skip


def closed_otherwise(facts: FactQuerySet) -> FactQuerySet:
    """Learnt rows that were closed by hand or by a program, and not by what was said."""
    done = facts.filter(retired_at__isnull=False, closed_by=None)
    return done.exclude(fate=Fact.Fate.UNFOUNDED)


def _entering(fact: Fact) -> SaidOrder:
    said: datetime | None = getattr(fact, "last_said", None)
    return at_moment(fact.settled_at or said or fact.recorded_at)


def _opening(board: Board, fact: Fact) -> Callable[[], None]:
    def run() -> None:
        row = copy.copy(fact)
        row.recorded_at = _entering(fact)[0]  # Its place among the others.
        if row.retired_at is not None:
            row.retired_at, row.fate, row.valid_to, row.closed_by = None, Fact.Fate.NONE, None, None
        for rival in _single_rivals(board, row):
            close(rival, Fact.Fate.SUPERSEDED, fact.recorded_at, ended_at=row.valid_from)
            board.note(rival)
        board.put(row)
        board.stored[row.pk] = fact

    return run


def _closing(board: Board, fact: Fact) -> Callable[[], None]:
    def run() -> None:
        for row in board.said_by(fact.opened_by_id):
            if row.retired_at is None:
                row.retired_at, row.fate = fact.retired_at, fact.fate
                row.valid_to, row.closed_by = fact.valid_to, None
                board.note(row)
                if fact.fate == Fact.Fate.DELETED:
                    _reopen_ended_by(board, row)
            elif row.opened_by_id == fact.opened_by_id:
                # What ended it does so no longer by itself.
                row.closed_by = None

    return run


def _reopen_ended_by(board: Board, deleted: Fact) -> None:
    """Hold again what a fact had ended that somebody has deleted."""
    by_it = [row for row in board.rows if row.closed_by_id == deleted.opened_by_id]
    for row in by_it:
        ended = row.retired_at is not None and row.fate in ENDED_BY and row is not deleted
        if ended and not _single_rivals(board, row):
            row.retired_at, row.fate, row.valid_to, row.closed_by = None, "", None, None
            board.note(row)


def _single_rivals(board: Board, fact: Fact) -> list[Fact]:
    if not fact.single:
        return []
    key = attrgetter("subject_id", "predicate", "aspect")
    about = board.active_about(fact.subject.slug)
    return [row for row in about if row.single and key(row) == key(fact)]


class _Player:
    """Judges statements on the board."""

    def __init__(
        self,
        palace: Palace,
        space: EmbeddingSpace,
        board: Board,
        stored: _Stored,
        texts: TextVectors,
    ) -> None:
        self._palace, self._space, self._board = palace, space, board
        self._placed, self._texts = stored.placed, texts
        self._entities: dict[tuple[str, str], Entity] = {}
        self._tools: dict[str, bool] = {}

    def play(self, statement: Statement, candidate: Candidate) -> None:
        scope = Scope(statement.by, statement.agent, statement.run, statement.metadata)
        drawers = self._drawers(statement)
        if drawers is None:
            return
        judge = _BoardJudge(self, statement, scope)
        writer = _BoardWriter(self, statement, scope, drawers)
        vector = self._texts[candidate.text]
        decision = judge.judge(candidate, vector)
        line = writer.write(decision, candidate.text, vector, statement)
        self._board.lines[statement.pk] = line

    def _drawers(self, statement: Statement) -> list[Drawer] | None:
        """The messages it rests on; None where one of them is gone."""
        names = messages_of(statement)
        first = statement.drawer
        if names == [first.external_id]:
            return [first]
        rows = Drawer.objects.within(self._palace).filter(
            source=first.source, conversation=first.conversation, external_id__in=names
        )
        found = {row.external_id: row for row in rows}
        return [found[name] for name in names] if set(names) <= found.keys() else None


class _BoardJudge(Judge):
    """Judges beside the rows on the board."""

    def __init__(self, player: _Player, statement: Statement, scope: Scope) -> None:
        super().__init__(player._palace, player._space, scope, None)
        self._player, self._board, self._statement = player, player._board, statement

    def _decided(self, candidate: Candidate, known: Sequence[Known]) -> Judgement | None:
        return decided(self._statement, candidate, known)

    def _latest(self) -> Sequence[KnownFact]:
        rows = islice(self._board.active(), OF_SUBJECT)
        return [self._board.known_fact(row) for row in rows]

    def _known_rows(self, candidate: Candidate, vector: Vector | None) -> KnownRows:
        found = {row.pk: (row, cosine) for row, cosine in self._board.closest(vector)}
        slug = slug_of(candidate.subject.name)
        for row in islice(self._board.active_about(slug), OF_SUBJECT):
            found.setdefault(row.pk, (row, 0.0))
        return KnownRows(sorted(found.values(), key=lambda row: -row[1]), self._board.known_fact)

    def _is_tool(self, name: str) -> bool:
        tools = self._player._tools
        if name not in tools:
            tools[name] = super()._is_tool(name)
        return tools[name]


class _BoardWriter(Writer):
    """Writes on the board."""

    def __init__(
        self, player: _Player, statement: Statement, scope: Scope, drawers: Sequence[Drawer]
    ) -> None:
        super().__init__(player._palace, player._space, scope, drawers)
        self._player, self._board = player, player._board

    def _row(self, candidate: Candidate, memory: UUID, text: str = "") -> Fact:
        row = super()._row(candidate, memory, text)
        statement = row.opened_by_id
        # Where somebody has split an entity since, the row is about the one it was given to.
        place = self._player._placed.get((statement, row.text))
        if place is not None:
            row.subject, row.object_entity = place
        return row

    def _entity(self, thing: Thing) -> Entity:
        key = (thing.name, thing.kind)
        entities = self._player._entities
        if key not in entities:
            entities[key] = super()._entity(thing)
        return entities[key]

    def _rivals(self, fact: Fact) -> Sequence[Fact]:
        return _single_rivals(self._board, fact)

    def _open(self, fact: Fact, words: Sequence[Words], vector: Vector | None) -> None:
        self._board.put(fact)
        self._rest_on(fact, words)

    def _rest_on(self, fact: Fact, words: Sequence[Words]) -> None:
        for span in words:
            self._board.words[fact.pk][self._drawers[span.turn].pk, span.start, span.end] = None
        if self._statement is not None:
            self._board.add_said(fact, [self._statement.pk])

    def _save(self, fact: Fact, *fields: str) -> None:
        self._board.note(fact)

    def _take_over(self, old: Fact, new: Fact) -> None:
        self._board.words[new.pk] |= self._board.words[old.pk]
        self._board.add_said(new, self._board.said[old.pk])

    def _note(
        self, event: FactEvent.Kind, memory: UUID, old: str | None, new: str | None, why: str
    ) -> None:
        """Histories are written where rows are."""

"""The facts of one scope as its statements leave them, judged in memory in the order of saying.

Nothing is written here: `palace.facts.reconciling` compares the outcome with the rows there are.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter, itemgetter
from uuid import UUID

import numpy as np
from django.db.models import Max

from palace.facts.applying import Remembered, Writer, close
from palace.facts.candidate import Candidate, Thing, Words
from palace.facts.judgement import Judgement, Known
from palace.facts.judging.judge import CLOSEST, OF_SUBJECT, Judge
from palace.facts.scope import Scope
from palace.facts.statements import candidate_of, decided, messages_of
from palace.indexing.fact_vectors import Vector, embed_texts
from palace.models import Drawer, EmbeddingSpace, Entity, Fact, FactEvent, Palace, Statement
from palace.models.facts import FactQuerySet
from palace.models.statements import SaidOrder, at_moment
from palace.slugs import slug_of

# Closed so by a statement, a row is held again where that statement counts no longer.
ENDED_BY = (*Fact.WAS_TRUE, Fact.Fate.CORRECTED)

Stretch = tuple[int, int, int]  # A drawer's key, start and end.


@dataclass
class Board:
    """What is held while statements are judged one after the other.

    Attributes:
        rows: Every row that was opened, in order; a row's key is its place, counted from 1.
        words: By row the stretches of drawers it rests on.
        said: By row the statements that opened, repeated or refined it.
        stored: By row the stored fact it stands for, where that was not learnt from a statement.
        lines: What became of each statement, by its key.
        vector_of: The vector of a text, computed once.
    """

    rows: list[Fact] = field(default_factory=list)
    words: dict[int, dict[Stretch, None]] = field(default_factory=lambda: defaultdict(dict))
    said: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    stored: dict[int, Fact] = field(default_factory=dict)
    lines: dict[int, Remembered | None] = field(default_factory=dict)
    vector_of: Callable[[str], Vector | None] = lambda _text: None
    _active: dict[int, Fact] = field(default_factory=dict)

    def put(self, row: Fact) -> None:
        self.rows.append(row)
        row.pk = len(self.rows)
        self.note(row)

    def note(self, row: Fact) -> None:
        """Keep up with whether a row is held."""
        if row.retired_at is None:
            self._active[row.pk] = row
        else:
            self._active.pop(row.pk, None)

    def active(self) -> list[Fact]:
        """Those said last first."""
        return [self._active[key] for key in sorted(self._active, reverse=True)]


def replayed(palace: Palace, space: EmbeddingSpace, agent: str, run: str) -> Board:
    """Judge all statements of a scope in the order in which they were said."""
    board = Board()
    stored = _Stored(palace, agent, run)
    statements = list(live_statements(palace, agent, run))
    candidates = [candidate_of(statement) for statement in statements]
    texts = _Texts(palace, space)
    texts.add([candidate.text for candidate in candidates])
    board.vector_of = texts.__getitem__
    player = _Player(palace, space, board, stored, texts)
    steps: list[tuple[SaidOrder, Callable[[], None]]] = list(stored.steps(board))
    for statement, candidate in zip(statements, candidates, strict=True):
        steps.append((statement.order, _step(player, statement, candidate)))
    for _, step in sorted(steps, key=itemgetter(0)):
        step()
    return board


def _step(player: _Player, statement: Statement, candidate: Candidate) -> Callable[[], None]:
    return lambda: player.play(statement, candidate)


def live_statements(palace: Palace, agent: str, run: str) -> Iterable[Statement]:
    """Those whose message is not in the trash."""
    rows = Statement.objects.filter(palace=palace, agent=agent, run=run)
    return rows.filter(drawer__palace=palace, drawer__trashed_at=None).select_related("drawer")


class _Texts:
    """Vectors of texts, computed once."""

    def __init__(self, palace: Palace, space: EmbeddingSpace) -> None:
        self._palace, self._space = palace, space
        self._vectors: dict[str, Vector | None] = {}

    def add(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors |= zip(new, embed_texts(self._palace, self._space, new), strict=True)

    def __getitem__(self, text: str) -> Vector | None:
        if text not in self._vectors:
            self.add([text])
        return self._vectors[text]


class _Stored:
    """Rows of the scope that no statement accounts for, and what was done to others by hand."""

    def __init__(self, palace: Palace, agent: str, run: str) -> None:
        facts = Fact.objects.within(palace).filter(agent=agent, run=run)
        facts = facts.select_related("subject", "object_entity", "opened_by__drawer")
        self._settled = list(written_otherwise(facts))
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
        for row in list(board.rows):
            if fact.opened_by_id not in board.said[row.pk]:
                continue
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
    for row in board.rows:
        ended = row.retired_at is not None and row.fate in ENDED_BY
        by_it = row.closed_by_id == deleted.opened_by_id and row is not deleted
        if ended and by_it and not _single_rivals(board, row):
            row.retired_at, row.fate, row.valid_to, row.closed_by = None, "", None, None
            board.note(row)


def _single_rivals(board: Board, fact: Fact) -> list[Fact]:
    if not fact.single:
        return []
    key = attrgetter("subject_id", "predicate", "aspect")
    return [row for row in board.active() if row.single and key(row) == key(fact)]


class _Player:
    """Judges statements on the board."""

    def __init__(
        self,
        palace: Palace,
        space: EmbeddingSpace,
        board: Board,
        stored: _Stored,
        texts: _Texts,
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
        judgement = judge.judge(candidate, vector)
        line = writer.write(judgement, candidate.text, vector, statement)
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
        self._player, self._statement = player, statement

    def _decided(self, candidate: Candidate, known: Sequence[Known]) -> Judgement | None:
        return decided(self._statement, candidate, known)

    def _latest(self) -> Sequence[Fact]:
        return self._player._board.active()[:OF_SUBJECT]

    def _known(self, candidate: Candidate, vector: Vector | None) -> list[Known]:
        rows = self._player._board.active()
        found = {one.fact.pk: one for one in _closest(rows, vector, self._player._texts)}
        slug = slug_of(candidate.subject.name)
        for row in [row for row in rows if row.subject.slug == slug][:OF_SUBJECT]:
            found.setdefault(row.pk, Known(row, 0.0))
        return sorted(found.values(), key=lambda known: -known.similarity)

    def _is_tool(self, name: str) -> bool:
        tools = self._player._tools
        if name not in tools:
            tools[name] = super()._is_tool(name)
        return tools[name]


def _closest(rows: Sequence[Fact], vector: Vector | None, texts: _Texts) -> list[Known]:
    if vector is None:
        return []
    vectors = [(row, texts[row.text]) for row in rows]
    cosines = [(float(np.dot(vector, other)), row) for row, other in vectors if other is not None]
    best = sorted(cosines, key=lambda one: (-one[0], one[1].pk))[:CLOSEST]
    return [Known(row, cosine) for cosine, row in best]


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
            self._board.said[fact.pk].add(self._statement.pk)

    def _save(self, fact: Fact, *fields: str) -> None:
        self._board.note(fact)

    def _take_over(self, old: Fact, new: Fact) -> None:
        self._board.words[new.pk] |= self._board.words[old.pk]
        self._board.said[new.pk] |= self._board.said[old.pk]

    def _note(
        self, event: FactEvent.Kind, memory: UUID, old: str | None, new: str | None, why: str
    ) -> None:
        """Histories are written where rows are."""

"""Replay the statements of one scope in memory, in the order in which they were said.

Nothing is written here: `late_statements` compares the outcome with the stored rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from operator import attrgetter, itemgetter
from uuid import UUID

from django.db.models import Max, OuterRef, Subquery

from language.facts import Candidate, Judgement, Known, KnownFact, Thing, Words
from language.slugs import slug_of
from llm import deadline
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_writer import Writer, close
from palace.knowledge.facts.judge import OF_SUBJECT, Conversation, Judge
from palace.knowledge.facts.pet_entities import is_of_people
from palace.knowledge.facts.replay_board import Board
from palace.knowledge.facts.row_conversion import (
    KnownRows,
    candidate_of,
    decided,
    messages_of,
)
from palace.models import (
    Drawer,
    EmbeddingSpace,
    Entity,
    Evidence,
    Fact,
    FactEvent,
    FactQuerySet,
    OuterPalace,
    Palace,
    SaidOrder,
    Statement,
    at_moment,
)
from palace.storage.indexing.fact_vectors import Vector, embed_texts

# Rows that a statement closed with these fates reopen when that statement disappears.
ENDED_BY = (*Fact.WAS_TRUE, Fact.Fate.CORRECTED)


def replayed(palace: Palace, space: EmbeddingSpace, agent: str, run: str) -> Board:
    """Judge all statements of a scope, in the order in which they were said."""
    board = Board()
    stored = _Stored(palace, agent, run)
    statements = list(live_statements(palace, agent, run))
    candidates = [candidate_of(statement) for statement in statements]
    texts = _Texts(palace, space)
    texts.add([*stored.texts, *(candidate.text for candidate in candidates)])
    board.vector_of = texts.__getitem__
    player = _Player(palace, space, board, stored, texts)
    steps: list[tuple[SaidOrder, Callable[[], None]]] = list(stored.steps(board))
    for statement, candidate in zip(statements, candidates, strict=True):
        steps.append((statement.order, partial(player.play, statement, candidate)))
    for _, step in sorted(steps, key=itemgetter(0)):
        deadline.check()
        step()
    return board


def live_statements(palace: Palace, agent: str, run: str) -> Iterable[Statement]:
    """Statements whose messages are not in the trash."""
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
    """Rows of the scope without a statement, and manual deletions of other rows."""

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
        """Insert each row when it was settled or said, and each deletion when it happened."""
        for fact in self._closed:
            if fact.retired_at is not None:
                yield at_moment(fact.retired_at), _closing(board, fact)
        for fact in self._settled:
            yield _entering(fact), _opening(board, fact)


def written_otherwise(facts: FactQuerySet) -> FactQuerySet:
    """Rows without a statement that are active, or were closed by a statement."""
    words = Evidence.objects.filter(palace=OuterPalace(), fact=OuterRef("pk"))
    said = words.order_by().values("fact").annotate(last=Max("drawer__said_at"))
    rows = facts.filter(opened_by=None).exclude(retired_at__isnull=False, closed_by=None)
    return rows.annotate(last_said=Subquery(said.values("last")))


def closed_otherwise(facts: FactQuerySet) -> FactQuerySet:
    """Rows from statements that were closed by hand or by a program."""
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
        row.supersedes = None  # The board's rows supersede rows of the board.
        rivals = _single_rivals(board, row)
        for rival in rivals:
            close(rival, Fact.Fate.SUPERSEDED, fact.recorded_at, ended_at=row.valid_from)
            board.update_index(rival)
        board.put(row)
        for rival in rivals:
            board.append_to_chain(row, rival)
        board.stored[row.pk] = fact

    return run


def _closing(board: Board, fact: Fact) -> Callable[[], None]:
    def run() -> None:
        for row in board.said_by(fact.opened_by_id):
            if row.retired_at is None:
                row.retired_at, row.fate = fact.retired_at, fact.fate
                row.valid_to, row.closed_by = fact.valid_to, None
                board.update_index(row)
                if fact.fate == Fact.Fate.DELETED:
                    _reopen_ended_by(board, row)
            elif row.opened_by_id == fact.opened_by_id:
                # The statement that ended it does not count any more.
                row.closed_by = None

    return run


def _reopen_ended_by(board: Board, deleted: Fact) -> None:
    """Reactivate the facts that a deleted fact had ended."""
    by_it = [row for row in board.rows if row.closed_by_id == deleted.opened_by_id]
    for row in by_it:
        ended = row.retired_at is not None and row.fate in ENDED_BY and row is not deleted
        if ended and not _single_rivals(board, row):
            row.retired_at, row.fate, row.valid_to, row.closed_by = None, "", None, None
            board.update_index(row)


def _single_rivals(board: Board, fact: Fact) -> list[Fact]:
    if not fact.single:
        return []
    key = attrgetter("subject_id", "predicate", "aspect")
    about = board.active_about(fact.subject.slug)
    return [row for row in about if key(row) == key(fact)]


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
        self._entities: dict[tuple[str, str, bool], Entity] = {}
        self._tools: dict[str, bool] = {}
        self._conversations: dict[Conversation, frozenset[int]] = {}

    def drawers_of(self, drawer: Drawer) -> frozenset[int]:
        """Keys of all drawers of this drawer's conversation."""
        key = drawer.source, drawer.conversation
        if key not in self._conversations:
            rows = Drawer.objects.within(self._palace).filter(source=key[0], conversation=key[1])
            self._conversations[key] = frozenset(rows.values_list("pk", flat=True))
        return self._conversations[key]

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
        """The messages of a statement; None if one of them is gone."""
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
    """Judges against the rows on the board."""

    def __init__(self, player: _Player, statement: Statement, scope: Scope) -> None:
        drawer = statement.drawer
        conversation = drawer.source, drawer.conversation
        super().__init__(player._palace, player._space, scope, None, conversation=conversation)
        self._player, self._board, self._statement = player, player._board, statement

    def _decided(self, candidate: Candidate, known: Sequence[Known]) -> Judgement | None:
        judgement = decided(self._statement, candidate, known)
        if judgement is None and self._statement.judged:
            self._board.overruled.add(self._statement.pk)
        return judgement

    def _latest(self) -> Sequence[KnownFact]:
        rows = islice(self._board.active(), OF_SUBJECT)
        return [self._board.known_fact(row) for row in rows]

    def _nearby(self) -> Sequence[KnownFact]:
        here = self._player.drawers_of(self._statement.drawer)
        rows = (row for row in self._board.active() if self._board.rests_on(row, here))
        return [self._board.known_fact(row) for row in islice(rows, OF_SUBJECT)]

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
        # After a split of an entity, the row stays with the entity it was moved to.
        place = self._player._placed.get((statement, row.text))
        if place is not None:
            row.subject, row.object_entity = place
        return row

    def _entity(self, thing: Thing, predicate: str = "") -> Entity:
        key = (thing.name, thing.kind, is_of_people(predicate))
        entities = self._player._entities
        if key not in entities:
            entities[key] = super()._entity(thing, predicate)
        return entities[key]

    def _rivals(self, fact: Fact) -> Sequence[Fact]:
        return _single_rivals(self._board, fact)

    def _append_to_chain(self, fact: Fact, replaced: Sequence[Fact]) -> None:
        for each in replaced:
            self._board.append_to_chain(fact, each)

    def _open(self, fact: Fact, words: Sequence[Words], vector: Vector | None) -> None:
        self._board.put(fact)
        self._rest_on(fact, words)

    def _rest_on(self, fact: Fact, words: Sequence[Words]) -> None:
        for span in words:
            self._board.words[fact.pk][self._drawers[span.turn].pk, span.start, span.end] = None
        if self._statement is not None:
            self._board.add_said(fact, [self._statement.pk])

    def _save(self, fact: Fact, *fields: str) -> None:
        self._board.update_index(fact)

    def _take_over(self, old: Fact, new: Fact) -> None:
        self._board.words[new.pk] |= self._board.words[old.pk]
        self._board.add_said(new, self._board.said[old.pk])

    def _note(
        self, event: FactEvent.Kind, memory: UUID, old: str | None, new: str | None, why: str
    ) -> None:
        """Do nothing: `late_statements` writes the history."""

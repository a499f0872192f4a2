"""Update facts after statements arrived or disappeared out of order: replay and store the changes.

Rows are never overwritten: a change opens a new row, and the history says why. A row
whose times differ from its statements' is closed as corrected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from uuid import UUID, uuid4

from django.db.models import F, Q
from django.utils import timezone

from language.facts import Verdict
from palace.knowledge.facts.fact_chains import append_to_chain, follow_versions
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_writer import (
    CLOSING,
    WAS_BEFORE,
    StatementOutcome,
    record_event,
    take_over_evidence,
)
from palace.knowledge.facts.replay_board import Board
from palace.knowledge.facts.statement_replay import replayed, written_otherwise
from palace.knowledge.facts.unsure_facts import suggest_unsure
from palace.models import (
    DrawerQuerySet,
    EmbeddingSpace,
    Evidence,
    Fact,
    FactEvent,
    FactQuerySet,
    Palace,
    Statement,
)
from palace.storage.indexing.fact_vectors import copy_vectors, store

IN_ORDER = "judged again in the order of saying"

_CONTENT = (
    *("type", "subject_id", "predicate", "object", "aspect", "stance", "text", "single"),
    *("confidence", "valid_from"),
)


def arrived_late(palace: Palace, statements: Sequence[Statement]) -> bool:
    """Whether anything of their scope that is known already was said later, or at once with them.

    Also where the messages of a window do not follow each other in time.
    """
    if not statements:
        return False
    orders = [statement.order for statement in statements]
    if orders != sorted(orders):
        return True
    first = statements[0]
    known = Statement.objects.filter(palace=palace, agent=first.agent, run=first.run)
    others = known.exclude(pk__in=[statement.pk for statement in statements])
    since = first.drawer.said_at
    live = others.filter(drawer__palace=palace, drawer__trashed_at=None).select_related("drawer")
    if live.filter(drawer__said_at__gt=since).exists():
        return True
    if any(one.order > first.order for one in live.filter(drawer__said_at=since)):
        return True
    facts = Fact.objects.within(palace).filter(agent=first.agent, run=first.run)
    said_later = Q(settled_at=None, evidence__drawer__said_at__gt=since)
    return written_otherwise(facts).filter(Q(settled_at__gt=since) | said_later).exists()


def scopes_of(palace: Palace, drawers: DrawerQuerySet) -> list[tuple[str, str]]:
    """Agents and runs of the statements from drawers."""
    statements = Statement.objects.filter(
        palace=palace, drawer__in=drawers.within(palace).values("pk")
    )
    return list(statements.order_by("agent", "run").values_list("agent", "run").distinct())


def reconcile(
    palace: Palace,
    space: EmbeddingSpace,
    scope: Scope,
    *,
    opened: str = IN_ORDER,
    closed: str = IN_ORDER,
) -> Reconciled:
    """Replay all statements of a scope, and write the difference to the stored facts.

    Call it in a transaction that has locked the palace.

    Args:
        opened, closed: Why rows are opened and closed, for the history.
    """
    board = replayed(palace, space, scope.agent, scope.run)
    work = Reconciled(palace, space, board, scope, (opened, closed))
    work.run()
    suggest_unsure(palace)
    return work


class Reconciled:
    """Writes the difference between a board and the stored rows.

    Attributes:
        closed: Rows that were active and are not any more.
        opened: Rows that are active and were not before.
    """

    def __init__(
        self,
        palace: Palace,
        space: EmbeddingSpace,
        board: Board,
        scope: Scope,
        whys: tuple[str, str],
    ) -> None:
        self.closed: list[Fact] = []
        self.opened: list[Fact] = []
        self._palace, self._space = palace, space
        self._board, self._scope = board, scope
        self._why_opened, self._why_closed = whys
        self._now = timezone.now()
        self._rows = self._stored_rows()
        self._opened: dict[int | None, list[Fact]] = defaultdict(list)
        for fact in self._rows.values():
            self._opened[fact.opened_by_id].append(fact)
        # A deleted memory stays deleted; the same statement opens another memory.
        deleted = Fact.objects.within(palace).filter(fate=Fact.Fate.DELETED)
        self._deleted = set(deleted.values_list("memory", flat=True))
        self._is: dict[int, Fact] = {}  # By row of the board: the stored one.
        self._memories: set[UUID] = set()
        self._known: set[int] = set()  # Rows that state what was active before.
        self._updated: set[UUID] = set()  # Memories whose histories say what replaced it.

    def line_of(self, statement: Statement) -> StatementOutcome | None:
        """The outcome of one statement."""
        line = self._board.lines.get(statement.pk)
        if line is None:
            return None
        row = line.fact
        if row is None:
            return replace(line, memory=self._memory_of(line))
        fact = self._is[row.pk]
        if fact.pk in self._known:
            known = "it is known already"
            return StatementOutcome(Verdict.NONE, fact.memory, fact, fact.text, fact.text, known)
        if fact.retired_at is not None and line.verdict in (Verdict.ADD, Verdict.UPDATE):
            return StatementOutcome(
                Verdict.COEXIST, fact.memory, fact, new_text=fact.text, why=WAS_BEFORE
            )
        return replace(line, memory=fact.memory, fact=fact)

    def has_overruled(self, statement: Statement) -> bool:
        """Whether rules judged a statement that a model had judged against other facts."""
        return statement.pk in self._board.overruled

    def _memory_of(self, line: StatementOutcome) -> UUID:
        rows = [row for row in self._board.rows if row.memory == line.memory]
        return self._is[rows[-1].pk].memory if rows else line.memory

    def run(self) -> None:
        pairs = self._paired()
        for row, fact in pairs:
            if fact is not None:
                self._settle(row, fact)
        for fact in self._rows.values():
            self._leave_out(fact)
        active = Fact.objects.within(self._palace).active()
        of_scope = {"agent": self._scope.agent, "run": self._scope.run}
        self._memories = set(active.filter(**of_scope).values_list("memory", flat=True))
        for row, fact in pairs:
            if row.pk not in self._is:
                self._open(row, fact)
        self._link(pairs)
        self._add_words()
        self._note_closings()

    def _link(self, pairs: Sequence[tuple[Fact, Fact | None]]) -> None:
        """Make each replaced row reachable from the row that took its place."""
        for row, version in pairs:
            stored = self._is[row.pk]
            if version is not None and version.pk != stored.pk:
                append_to_chain(self._palace, stored, version)
            if row.supersedes is not None:
                append_to_chain(self._palace, stored, self._is[row.supersedes.pk])

    def _paired(self) -> list[tuple[Fact, Fact | None]]:
        """Each row of the board, with the stored row that it matches or replaces."""
        stored = {row.pk: self._match(row) for row in self._board.rows}
        for row in self._board.rows:
            if stored[row.pk] is None and row.retired_at is None:
                stored[row.pk] = self._match_by_text(row)
        return [(row, stored[row.pk]) for row in self._board.rows]

    def _stored_rows(self) -> dict[int, Fact]:
        facts: FactQuerySet = Fact.objects.within(self._palace).filter(
            agent=self._scope.agent, run=self._scope.run
        )
        learnt = facts.exclude(opened_by=None).select_related("subject", "object_entity")
        # Active rows last: of several rows that a statement opened, the last one counts.
        in_order = learnt.order_by(F("retired_at").asc(nulls_last=True), "recorded_at", "pk")
        return {fact.pk: fact for fact in in_order}

    def _match(self, row: Fact) -> Fact | None:
        """The stored row from the same statement; of several one with the same content."""
        if row.pk in self._board.stored:
            return self._board.stored[row.pk]
        opened = self._opened[row.opened_by_id]
        alike = [fact for fact in opened if _content(fact) == _content(row)]
        found = next(reversed(alike or opened), None)
        return self._rows.pop(found.pk) if found else None

    def _match_by_text(self, row: Fact) -> Fact | None:
        """An active row with the same text, from another statement."""
        key = attrgetter("subject_id", "predicate", "text", "retired_at")
        found = next((fact for fact in self._rows.values() if key(fact) == key(row)), None)
        return self._rows.pop(found.pk) if found else None

    def _leave_out(self, fact: Fact) -> None:
        """Close a row that no statement supports any more."""
        if fact.retired_at is None:
            self._withdraw(fact)
        elif fact.closed_by_id is not None and fact.fate in Fact.WAS_TRUE:
            self._take_back(fact, Fact.Fate.UNFOUNDED)
            fact.closed_by = None
            fact.save(update_fields=["fate", "withdrawn_at", "closed_by"])

    def _settle(self, row: Fact, fact: Fact) -> None:
        """Keep the stored row, close it, or make way for another version of it."""
        alike = row.pk in self._board.stored or _content(fact) == _content(row)
        if alike and (fact.retired_at is None) == (row.retired_at is None):
            if fact.retired_at is None:
                alike = fact.valid_to == row.valid_to
            else:
                alike = (fact.fate, fact.valid_to) == (row.fate, row.valid_to)
            if alike:
                self._keep(row, fact)
                return
        if fact.retired_at is None:
            self._close(row, fact, alike=alike)
        elif not self._stays_closed(row, fact):
            self._disown(fact)

    def _stays_closed(self, row: Fact, fact: Fact) -> bool:
        """Skip versions that were never true, before or after the replay."""
        never = row.retired_at is not None and fact.retired_at is not None
        if never and fact.fate not in Fact.WAS_TRUE and row.fate not in Fact.WAS_TRUE:
            self._keep(row, fact)
            return True
        return False

    def _keep(self, row: Fact, fact: Fact) -> None:
        self._is[row.pk] = fact
        closing = row.closed_by_id
        if fact.opened_by_id != row.opened_by_id or fact.closed_by_id != closing:
            fact.opened_by_id, fact.closed_by_id = row.opened_by_id, closing
            fact.save(update_fields=["opened_by", "closed_by"])

    def _close(self, row: Fact, fact: Fact, *, alike: bool) -> None:
        self.closed.append(fact)
        if row.retired_at is None or not alike:
            # Another version takes its place, which says so in the history.
            fact.retired_at, fact.fate = self._now, Fact.Fate.REFINED
            self._disown(fact, *CLOSING)
            return
        fact.retired_at, fact.fate, fact.valid_to = self._now, row.fate, row.valid_to
        fact.closed_by_id = row.closed_by_id
        fact.save(update_fields=CLOSING)
        self._is[row.pk] = fact

    def _disown(self, fact: Fact, *fields: str) -> None:
        """Let a closed row stand for nothing any more: what it says of times was wrong."""
        self._take_back(fact, Fact.Fate.CORRECTED)
        fact.opened_by, fact.closed_by = None, None
        fact.save(update_fields={"fate", "withdrawn_at", "opened_by", "closed_by", *fields})

    def _take_back(self, fact: Fact, fate: Fact.Fate) -> None:
        """Say that a closed row was not so until its end, and since when we say it."""
        if fact.fate in Fact.WAS_TRUE:
            fact.withdrawn_at = self._now
        if fact.fate in (*Fact.WAS_TRUE, Fact.Fate.UNFOUNDED):
            fact.fate = fate

    def _withdraw(self, fact: Fact) -> None:
        """Retire a row that no statement leads to."""
        self.closed.append(fact)
        fact.retired_at, fact.fate = self._now, Fact.Fate.CORRECTED
        self._disown(fact, *CLOSING)

    def _open(self, row: Fact, version: Fact | None) -> None:
        new = _copied(row)
        new.recorded_at = self._now
        new.supersedes = self._before(row, version)
        if row.retired_at is None:
            new.memory = self._memory_for(new.supersedes)
            self._memories.add(new.memory)
            self.opened.append(new)
        else:
            new.memory, new.retired_at = uuid4(), self._now
        new.save()
        self._is[row.pk] = new
        if version is not None:
            take_over_evidence(version, new)
        if version is not None and version.text == new.text:
            copy_vectors(version, new)
        elif (vector := self._board.vector_of(new.text)) is not None:
            store(self._palace, self._space, {new.pk: vector})
        self._note_opening(row, new, version)
        follow_versions(self._palace, new)

    def _before(self, row: Fact, version: Fact | None) -> Fact | None:
        """The row it replaces: a previous version of itself, or the fact it ends."""
        ended = self._is.get(row.supersedes.pk) if row.supersedes is not None else None
        if version is not None and (ended is None or version in self.closed):
            return version
        return ended

    def _memory_for(self, before: Fact | None) -> UUID:
        if before is None or before.memory in self._memories | self._deleted:
            return uuid4()
        return before.memory

    def _note_opening(self, row: Fact, new: Fact, version: Fact | None) -> None:
        if row.retired_at is not None:
            if version is None and row.fate in Fact.WAS_TRUE:
                self._note(FactEvent.Kind.ADD, new.memory, None, new.text, WAS_BEFORE)
            return
        line = self._board.lines.get(row.opened_by_id or 0)
        why = line.why if line and version is None else self._why_opened
        # What the memory said until now; not always what the new row is a version of.
        before = next((fact for fact in self.closed if fact.memory == new.memory), None)
        if before is not None:
            self._updated.add(new.memory)
            if before.text == new.text:
                # It is so since another day: its versions say so, and nothing else has changed.
                self._known.add(new.pk)
                return
            self._note(FactEvent.Kind.UPDATE, new.memory, before.text, new.text, why)
        else:
            self._note(FactEvent.Kind.ADD, new.memory, None, new.text, why)

    def _note_closings(self) -> None:
        for fact in self.closed:
            if fact.memory not in self._updated:
                self._note(FactEvent.Kind.DELETE, fact.memory, fact.text, None, self._why_closed)

    def _note(
        self, event: FactEvent.Kind, memory: UUID, old: str | None, new: str | None, why: str
    ) -> None:
        record_event(self._palace, self._scope, event, memory, old, new, why=why, at=self._now)

    def _add_words(self) -> None:
        rows = [
            Evidence(
                palace=self._palace, fact=self._is[key], drawer_id=drawer, start=start, end=end
            )
            for key, stretches in self._board.words.items()
            for drawer, start, end in stretches
        ]
        Evidence.objects.bulk_create(rows, ignore_conflicts=True)


def _content(fact: Fact) -> tuple[object, ...]:
    return tuple(getattr(fact, name) for name in _CONTENT)


def _copied(row: Fact) -> Fact:
    """A row of the board, to be stored."""
    left_out = {"id", "uuid", "memory", "supersedes", "recorded_at", "withdrawn_at"}
    values = {
        each.attname: getattr(row, each.attname)
        for each in Fact._meta.concrete_fields
        if each.name not in left_out
    }
    return Fact(**values)

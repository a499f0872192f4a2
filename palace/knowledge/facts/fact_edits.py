"""Facts changed by hand or by a program: rewritten, deleted, restored. Each leaves its history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from language.transcripts import Turn
from palace.errors import FactConflict, NoSuchFact
from palace.knowledge.facts.deletion import delete_rows, forget_statements
from palace.knowledge.facts.edited_sentence import follow, says_same
from palace.knowledge.facts.fact_reader import FactReader
from palace.knowledge.facts.fact_writer import event, note, retire, take_over_evidence
from palace.knowledge.facts.reconciliation import IN_ORDER, reconcile
from palace.knowledge.facts.scope import Scope
from palace.knowledge.facts.statement_replay import ENDED_BY
from palace.models import Fact, FactEvent, Palace
from palace.models.facts import FactQuerySet
from palace.storage.indexing.fact_vectors import copy_vectors, fill_missing
from palace.storage.indexing.spaces import active_space

RESTORED = "restored"
ENDING_DELETED = "what had ended it was deleted"
ENDED_BY_RESTORED = "what ends it was restored"
# Rows that one transaction deletes.
BATCH = 500


def as_it_may_be(fact: Fact) -> None:
    """To change it, whatever it says."""


def current(palace: Palace, memory: UUID) -> Fact:
    """The row of a memory that is held.

    Raises:
        NoSuchFact: there is no such memory in this palace, or it is held no longer.
    """
    facts = Fact.objects.within(palace).active().select_related("subject", "object_entity")
    fact = facts.filter(memory=memory).first()
    if fact is None:
        raise NoSuchFact(memory)
    return fact


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What became of a memory that was given another sentence.

    Attributes:
        fact: The row that is active now.
        old: The row before it; the same where the sentence was there already.
        is_read: Whether the sentence was read as one statement about the same subject. If not,
            `fact` has the sentence, the subject and the predicate, and nothing beyond.
    """

    fact: Fact
    old: Fact
    is_read: bool = True


def rewrite(
    palace: Palace,
    memory: UUID,
    text: str,
    scope: Scope,
    *,
    check: Callable[[Fact], None] = as_it_may_be,
) -> Rewritten:
    """Correct the sentence of a memory; what it states follows: object, edge, words, vector.

    Call it outside of a transaction: it may ask models, which takes seconds.

    Args:
        check: Is given the row that is held, while nobody can change it; what it raises leaves it.

    Raises:
        NoSuchFact: as `current`.
        FactConflict: the sentence states what the subject has one of, and another is active.
    """
    if current(palace, memory).text != text:
        candidates = FactReader(palace).read([Turn("", "user", text, timezone.now())])
    else:
        candidates = []
    with transaction.atomic():
        palace.lock()
        old = current(palace, memory)
        check(old)
        if old.text == text:
            return Rewritten(old, old)
        new = copy_of(old)
        new.text, new.supersedes, new.recorded_at = text, old, timezone.now()
        is_read = follow(palace, new, old, candidates)
        retire(old, Fact.Fate.CORRECTED, new.recorded_at)
        _refuse_if_taken(palace, new)
        new.save()
        _take_over_words(palace, new)
        note(palace, scope, FactEvent.Kind.UPDATE, memory, old.text, text, at=new.recorded_at)
    fill_missing(palace, active_space(), [new])
    return Rewritten(new, old, is_read)


def _take_over_words(palace: Palace, new: Fact) -> None:
    """Let a version rest on the words of those that state the same."""
    versions = Fact.objects.within(palace).filter(memory=new.memory).exclude(pk=new.pk)
    for version in versions.order_by("pk"):
        if says_same(version, new):
            take_over_evidence(version, new)


def delete(
    palace: Palace,
    memory: UUID,
    scope: Scope,
    *,
    why: str = "",
    check: Callable[[Fact], None] = as_it_may_be,
    at: datetime | None = None,
) -> None:
    """Retire a memory. Its rows stay, for its history. `check` as of `rewrite`.

    What it had ended by other words is active again, as a memory of its own.

    Args:
        at: When it is deleted; now unless given.

    Raises:
        NoSuchFact: as `current`.
    """
    with transaction.atomic():
        palace.lock()
        fact = current(palace, memory)
        check(fact)
        _drop(palace, [fact], scope, at or timezone.now(), why)
        if _has_ended(palace, fact):
            _reconcile(palace, fact, scope, opened=ENDING_DELETED)


def delete_all(
    palace: Palace, facts: FactQuerySet, scope: Scope, *, at: datetime | None = None
) -> int:
    """`delete` for all of the facts that are active; returns how many there were."""
    moment = at or timezone.now()
    count = 0
    while True:
        with transaction.atomic():
            palace.lock()
            batch = list(facts.within(palace).active().order_by("pk")[:BATCH])
            _drop(palace, batch, scope, moment, "")
            _end_for_good(palace, batch)
        count += len(batch)
        if len(batch) < BATCH:
            return count


def restore(palace: Palace, fact: Fact, scope: Scope) -> Fact:
    """Hold again what was dropped, as a row of its own: what was meanwhile stays on record.

    Args:
        fact: The version that is to hold again.

    Raises:
        FactConflict: something else is held in its place; says what.
    """
    with transaction.atomic():
        palace.lock()
        new = hold_in_order(palace, fact, scope, why=RESTORED)
    fill_missing(palace, active_space(), [new])
    return new


def hold_again(palace: Palace, fact: Fact, scope: Scope, *, why: str) -> Fact:
    """`restore` for those who hold the palace; the vector goes along where there is one."""
    _refuse_if_taken(palace, fact)
    new = copy_of(fact)
    new.supersedes, new.recorded_at = fact, timezone.now()
    if fact.fate in Fact.WAS_TRUE:
        # It had no end after all: the row that says so would tell the same time twice.
        new.valid_to, fact.fate, fact.closed_by = None, Fact.Fate.CORRECTED, None
        fact.withdrawn_at = new.recorded_at
        fact.save(update_fields=["fate", "closed_by", "withdrawn_at"])
    new.save()
    take_over_evidence(fact, new)
    copy_vectors(fact, new)
    note(palace, scope, FactEvent.Kind.ADD, fact.memory, None, fact.text, why=why)
    return new


def _has_ended(palace: Palace, fact: Fact) -> bool:
    """Whether the words that the fact comes from ended another one."""
    if fact.opened_by_id is None:
        return False
    closed = Fact.objects.within(palace).filter(closed_by=fact.opened_by_id, fate__in=ENDED_BY)
    return closed.exclude(pk=fact.pk).exists()


def _end_for_good(palace: Palace, facts: Iterable[Fact]) -> None:
    """Former versions of deleted memories stay closed, whatever becomes of what closed them."""
    rows = Fact.objects.within(palace).filter(memory__in=[fact.memory for fact in facts])
    rows.exclude(closed_by=None).update(closed_by=None)


def hold_in_order(palace: Palace, fact: Fact, scope: Scope, *, why: str) -> Fact:
    """`hold_again`, where what it had ended may be in its place: that ends once more.

    Raises:
        FactConflict: as `restore`.
    """
    try:
        return hold_again(palace, fact, scope, why=why)
    except FactConflict:
        return _hold_learnt_again(palace, fact, scope, why=why)


def _hold_learnt_again(palace: Palace, fact: Fact, scope: Scope, *, why: str) -> Fact:
    if fact.fate == Fact.Fate.DELETED and fact.opened_by_id is not None:
        with transaction.atomic():
            # Judged again, it is like any statement whose words are back.
            fact.fate = Fact.Fate.UNFOUNDED
            fact.save(update_fields=["fate"])
            _reconcile(palace, fact, scope, opened=why, closed=ENDED_BY_RESTORED)
            held = Fact.objects.within(palace).active().filter(opened_by=fact.opened_by_id)
            if new := held.first():
                return new
            transaction.set_rollback(True)
    return hold_again(palace, fact, scope, why=why)


def _reconcile(
    palace: Palace, fact: Fact, scope: Scope, *, opened: str, closed: str = IN_ORDER
) -> None:
    of_fact = replace(scope, agent=fact.agent, run=fact.run)
    reconcile(palace, active_space(), of_fact, opened=opened, closed=closed)


def forget(palace: Palace, facts: FactQuerySet) -> int:
    """Delete facts with their history, as if they had never been; returns how many rows went."""
    with transaction.atomic():
        palace.lock()
        rows = list(facts.within(palace))
        forget_statements(palace, [fact.pk for fact in rows])
        delete_rows(palace, rows)
    return len(rows)


def _drop(palace: Palace, facts: Sequence[Fact], scope: Scope, at: datetime, why: str) -> None:
    keys = [fact.pk for fact in facts]
    dropped = Fact.objects.within(palace).filter(pk__in=keys)
    dropped.update(retired_at=at, fate=Fact.Fate.DELETED, closed_by=None)
    notes = [
        event(palace, scope, FactEvent.Kind.DELETE, fact.memory, fact.text, None, why=why, at=at)
        for fact in facts
    ]
    FactEvent.objects.bulk_create(notes)


def _refuse_if_taken(palace: Palace, fact: Fact) -> None:
    held = Fact.objects.within(palace).active()
    same = held.filter(memory=fact.memory)
    if fact.single:
        same = same | held.filter(
            subject=fact.subject_id,
            predicate=fact.predicate,
            aspect=fact.aspect,
            agent=fact.agent,
            run=fact.run,
            single=True,
        )
    taken = same.first()
    if taken is not None:
        raise FactConflict(taken.text)


def copy_of(fact: Fact) -> Fact:
    """A row that says the same and is held, as settled now; not saved."""
    left_out = {"id", "uuid", "retired_at", "fate", "supersedes", "recorded_at"}
    left_out |= {"opened_by", "closed_by", "settled_at", "withdrawn_at"}
    values = {
        field.attname: getattr(fact, field.attname)
        for field in Fact._meta.concrete_fields
        if field.name not in left_out
    }
    return Fact(**values, settled_at=timezone.now())

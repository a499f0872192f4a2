"""Facts changed by hand or by a program: rewritten, deleted, restored. Each leaves its history."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from palace.errors import FactConflict, NoSuchFact
from palace.facts.applying import note, retire, take_over_evidence
from palace.facts.forgetting import delete_rows
from palace.facts.scope import Scope
from palace.indexing.fact_vectors import fill_missing, take_over_vectors
from palace.indexing.spaces import active_space
from palace.models import Fact, FactEvent, Palace
from palace.models.facts import FactQuerySet

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


def rewrite(
    palace: Palace,
    memory: UUID,
    text: str,
    scope: Scope,
    *,
    check: Callable[[Fact], None] = as_it_may_be,
) -> Fact:
    """Let a memory say something else: as a correction, for it is the sentence that was wrong.

    Call it outside of a transaction, as the embedder may be asked.

    Args:
        check: Is given the row that is held, while nobody can change it; what it raises leaves it.

    Raises:
        NoSuchFact: as `current`.
    """
    with transaction.atomic():
        palace.lock()
        old = current(palace, memory)
        check(old)
        if old.text == text:
            return old
        new = copy_of(old)
        new.text, new.supersedes, new.recorded_at = text, old, timezone.now()
        retire(old, Fact.Fate.CORRECTED, new.recorded_at)
        new.save()
        take_over_evidence(old, new)
        note(palace, scope, FactEvent.Kind.UPDATE, memory, old.text, text, at=new.recorded_at)
    fill_missing(palace, active_space(), [new])
    return new


def delete(
    palace: Palace,
    memory: UUID,
    scope: Scope,
    *,
    why: str = "",
    check: Callable[[Fact], None] = as_it_may_be,
) -> None:
    """Hold a memory no longer. Its rows stay, for its history. `check` as of `rewrite`.

    Raises:
        NoSuchFact: as `current`.
    """
    with transaction.atomic():
        palace.lock()
        fact = current(palace, memory)
        check(fact)
        _drop([fact], scope, Fact.Fate.DELETED, why)


def delete_all(palace: Palace, facts: FactQuerySet, scope: Scope) -> int:
    """`delete` for all of the facts that are held; returns how many there were."""
    count = 0
    while True:
        with transaction.atomic():
            palace.lock()
            batch = list(
                facts.within(palace).active().select_related("palace").order_by("pk")[:BATCH]
            )
            _drop(batch, scope, Fact.Fate.DELETED, "")
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
        new = hold_again(palace, fact, scope, why="restored")
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
        fact.save(update_fields=["fate", "closed_by"])
    new.save()
    take_over_evidence(fact, new)
    take_over_vectors(fact, new)
    note(palace, scope, FactEvent.Kind.ADD, fact.memory, None, fact.text, why=why)
    return new


def forget(palace: Palace, facts: FactQuerySet) -> int:
    """Delete facts with their history, as if they had never been; returns how many rows went."""
    with transaction.atomic():
        palace.lock()
        rows = list(facts.within(palace))
        delete_rows(palace, rows)
    return len(rows)


def _drop(facts: Iterable[Fact], scope: Scope, fate: Fact.Fate, why: str) -> None:
    now = timezone.now()
    for fact in facts:
        retire(fact, fate, now)
        note(
            fact.palace, scope, FactEvent.Kind.DELETE, fact.memory, fact.text, None, why=why, at=now
        )


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
    left_out |= {"opened_by", "closed_by", "settled_at"}
    values = {
        field.attname: getattr(fact, field.attname)
        for field in Fact._meta.concrete_fields
        if field.name not in left_out
    }
    return Fact(**values, settled_at=timezone.now())

"""Edit facts by hand or by a program: rewrite, delete, restore. The history keeps each change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from language.errors import FactConflict, NoSuchFact
from language.facts import SURE, is_single
from language.transcripts import Turn
from palace.knowledge.facts.fact_chains import bridge_deleted, follow_versions
from palace.knowledge.facts.fact_extraction import FactReader, Scope
from palace.knowledge.facts.fact_writer import (
    event,
    record_event,
    retire,
    rivals_of,
    take_over_evidence,
)
from palace.knowledge.facts.late_statements import IN_ORDER, reconcile
from palace.knowledge.facts.row_conversion import Details, apply_edit, content_of, says_same
from palace.knowledge.facts.statement_replay import ENDED_BY
from palace.models import Evidence, Fact, FactEvent, FactQuerySet, Palace, Statement
from palace.storage.indexing import fact_vectors
from palace.storage.indexing.fact_vectors import copy_vectors, fill_missing, forget_texts
from palace.storage.indexing.spaces import active_space

RESTORED = "restored"
ENDING_DELETED = "what had ended it was deleted"
ENDED_BY_RESTORED = "what ends it was restored"
# Rows that one transaction deletes.
BATCH = 500


# Called with the active, locked row before a change; raise to abort.
Check = Callable[[Fact], None]


def current(palace: Palace, memory: UUID) -> Fact:
    """The active row of a memory.

    Raises:
        NoSuchFact: the palace has no such memory, or it is inactive.
    """
    facts = Fact.objects.within(palace).active().select_related("subject", "object_entity")
    fact = facts.filter(memory=memory).first()
    if fact is None:
        raise NoSuchFact(memory)
    return fact


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The result of `rewrite`.

    Attributes:
        fact: The row that is active now.
        old: The row before it; the same if the sentence did not change.
        is_read: Whether the sentence could be read as one statement about the same subject. If not,
            `fact` has only the sentence, the subject and the predicate.
    """

    fact: Fact
    old: Fact
    is_read: bool = True


def rewrite(
    palace: Palace,
    memory: UUID,
    text: str | None,
    scope: Scope,
    *,
    check: Check | None = None,
    details: Details | None = None,
) -> Rewritten:
    """Correct the sentence of a memory; object, edge, evidence and vector follow it.

    Call it outside of a transaction: calls to models take seconds.

    Args:
        text: None leaves the sentence as it is.
        check: Called with the active row, locked; raise to abort.

    Raises:
        NoSuchFact: as `current`.
        FactConflict: another active fact states the only possible value.
    """
    details = details or Details()
    if text not in (None, current(palace, memory).text, details.text):
        candidates = FactReader(palace).read([Turn("", "user", text, timezone.now())])
    else:
        candidates = []
    with transaction.atomic():
        palace.lock()
        old = current(palace, memory)
        if check:
            check(old)
        new = copy_of(old)
        new.supersedes, new.recorded_at = old, timezone.now()
        new.text = old.text if text is None else text
        is_read = apply_edit(palace, new, old, details, candidates)
        if content_of(new) == content_of(old):
            return Rewritten(old, old)
        # What somebody has put right is not unsure.
        new.confidence = max(new.confidence, SURE)
        replace_version(palace, old, new, scope)
        if details.subject:
            take_over_evidence(old, new)
    fill_missing(palace, active_space(), [new])
    return Rewritten(new, old, is_read)


def replace_version(palace: Palace, old: Fact, new: Fact, scope: Scope) -> None:
    """Save a corrected version in place of the active one. The caller locks the palace.

    Raises:
        FactConflict: as `rewrite`.
    """
    retire(old, Fact.Fate.CORRECTED, new.recorded_at)
    _claim_place(palace, new)
    new.save()
    _take_over_words(palace, new)
    record_event(
        palace, scope, FactEvent.Kind.UPDATE, old.memory, old.text, new.text, at=new.recorded_at
    )


def _take_over_words(palace: Palace, new: Fact) -> None:
    """Copy the evidence of versions that state the same."""
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
    check: Check | None = None,
    at: datetime | None = None,
) -> None:
    """Retire a memory; its rows stay for its history. `check` as in `rewrite`.

    Facts that it had ended become active again, as memories of their own.

    Args:
        at: When it is deleted; now by default.

    Raises:
        NoSuchFact: as `current`.
    """
    with transaction.atomic():
        palace.lock()
        fact = current(palace, memory)
        if check:
            check(fact)
        _drop(palace, [fact], scope, at or timezone.now(), why)
        if _has_ended(palace, fact):
            _reconcile(palace, fact, scope, opened=ENDING_DELETED)


def delete_all(
    palace: Palace, facts: FactQuerySet, scope: Scope, *, at: datetime | None = None
) -> int:
    """`delete` for all active facts of these; returns their number."""
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
    """Reactivate a retired fact, as a new row; the time between stays in the history.

    Args:
        fact: The version to reactivate.

    Raises:
        FactConflict: another fact is active in its place; says which.
    """
    with transaction.atomic():
        palace.lock()
        new = reactivate_in_order(palace, fact, scope, why=RESTORED)
    fill_missing(palace, active_space(), [new])
    return new


def reactivate(palace: Palace, fact: Fact, scope: Scope, *, why: str) -> Fact:
    """`restore` within a transaction that has locked the palace; copies the vector if any."""
    new = copy_of(fact)
    new.supersedes, new.recorded_at = fact, timezone.now()
    if fact.fate in Fact.WAS_TRUE:
        # It did not end after all: otherwise two rows would cover the same time.
        new.valid_to = None
    _claim_place(palace, new)
    if fact.fate in Fact.WAS_TRUE:
        fact.fate, fact.closed_by = Fact.Fate.CORRECTED, None
        fact.withdrawn_at = new.recorded_at
        fact.save(update_fields=["fate", "closed_by", "withdrawn_at"])
    new.save()
    follow_versions(palace, new)
    take_over_evidence(fact, new)
    copy_vectors(fact, new)
    record_event(palace, scope, FactEvent.Kind.ADD, fact.memory, None, fact.text, why=why)
    return new


def _has_ended(palace: Palace, fact: Fact) -> bool:
    """Whether the statement that the fact comes from ended another fact."""
    if fact.opened_by_id is None:
        return False
    closed = Fact.objects.within(palace).filter(closed_by=fact.opened_by_id, fate__in=ENDED_BY)
    return closed.exclude(pk=fact.pk).exists()


def _end_for_good(palace: Palace, facts: Iterable[Fact]) -> None:
    """Keep former versions of deleted memories closed, even if what closed them is deleted."""
    rows = Fact.objects.within(palace).filter(memory__in=[fact.memory for fact in facts])
    rows.exclude(closed_by=None).update(closed_by=None)


def reactivate_in_order(palace: Palace, fact: Fact, scope: Scope, *, why: str) -> Fact:
    """`reactivate`; facts that it had ended, and that are active now, end again.

    One that is not sure enough waits under Review again.

    Raises:
        FactConflict: as `restore`.
    """
    if fact.confidence < SURE:
        return _replay_deleted(palace, fact, scope, why=why)
    try:
        return reactivate(palace, fact, scope, why=why)
    except FactConflict:
        return _replay_deleted(palace, fact, scope, why=why)


def _replay_deleted(palace: Palace, fact: Fact, scope: Scope, *, why: str) -> Fact:
    if fact.fate == Fact.Fate.DELETED and fact.opened_by_id is not None:
        with transaction.atomic():
            # Replay its statement, as for a message that returns from the trash.
            fact.fate = Fact.Fate.UNFOUNDED
            fact.save(update_fields=["fate"])
            _reconcile(palace, fact, scope, opened=why, closed=ENDED_BY_RESTORED)
            again = Fact.objects.within(palace).active().filter(opened_by=fact.opened_by_id)
            if new := again.first():
                return new
            transaction.set_rollback(True)
    return reactivate(palace, fact, scope, why=why)


def _reconcile(
    palace: Palace, fact: Fact, scope: Scope, *, opened: str, closed: str = IN_ORDER
) -> None:
    of_fact = replace(scope, agent=fact.agent, run=fact.run)
    reconcile(palace, active_space(), of_fact, opened=opened, closed=closed)


def forget(palace: Palace, facts: FactQuerySet) -> int:
    """Delete facts with their history, permanently; returns the number of rows."""
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


def _claim_place(palace: Palace, fact: Fact) -> None:
    """Let the fact be the one that holds its place; another version or a rival may hold it.

    Of single-valued facts that follow each other, only the latest stays marked as the single one.

    Raises:
        FactConflict: names the other fact.
    """
    active = Fact.objects.within(palace).active()
    if (taken := active.filter(memory=fact.memory).first()) is not None:
        raise FactConflict(taken.text)
    # An edit may have removed the end of a fact that was followed by another one.
    fact.single = fact.single or (is_single(fact.predicate) and fact.confidence >= SURE)
    if not fact.single:
        return
    for rival in rivals_of(palace, fact).filter(single=True):
        if _ends_before(rival, fact):
            rival.single = False
            rival.save(update_fields=["single"])
        elif _ends_before(fact, rival):
            fact.single = False
        else:
            raise FactConflict(rival.text)


def _ends_before(one: Fact, other: Fact) -> bool:
    """Whether it ended before the other began; if that is not known, before now."""
    return one.valid_to is not None and one.valid_to <= (other.valid_from or timezone.now())


def copy_of(fact: Fact) -> Fact:
    """An unsaved, active copy of a row, settled now."""
    left_out = {"id", "uuid", "retired_at", "fate", "supersedes", "recorded_at"}
    left_out |= {"opened_by", "closed_by", "settled_at", "withdrawn_at"}
    values = {
        field.attname: getattr(fact, field.attname)
        for field in Fact._meta.concrete_fields
        if field.name not in left_out
    }
    return Fact(**values, settled_at=timezone.now())


def delete_rows(palace: Palace, facts: Sequence[Fact]) -> None:
    """Delete rows, and the history of memories without rows. The caller locks the palace."""
    keys = [fact.pk for fact in facts]
    forget_proposals(palace, facts=keys)
    bridge_deleted(palace, keys)
    fact_vectors.delete(palace, keys)
    with connection.cursor() as cursor:
        # The database deletes their evidence.
        cursor.execute(
            "DELETE FROM palace_fact WHERE palace_id = %s AND id = ANY(%s)", [palace.pk, keys]
        )
    memories = {fact.memory for fact in facts}
    left = Fact.objects.within(palace).filter(memory__in=memories)
    ended = memories - set(left.values_list("memory", flat=True))
    events = FactEvent.objects.filter(palace=palace)
    events.filter(memory__in=ended).delete()
    lasting = events.filter(memory__in=memories - ended)
    texts = {fact.text for fact in facts}
    forget_texts(texts)
    lasting.filter(old_text__in=texts).update(old_text=None)
    lasting.filter(new_text__in=texts).update(new_text=None)


def forget_statements(palace: Palace, facts: Collection[int]) -> None:
    """Delete the statements behind facts, given by key: a replay would restore the facts."""
    words = Evidence.objects.filter(palace=palace, fact__in=facts)
    stretches = set(words.values_list("drawer_id", "start", "end"))
    statements = Statement.objects.filter(palace=palace, drawer__in={key for key, *_ in stretches})
    gone = [
        statement.pk
        for statement in statements
        if any((statement.drawer_id, *span) in stretches for _, *span in statement.content["words"])
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM palace_statement WHERE palace_id = %s AND id = ANY(%s)", [palace.pk, gone]
        )


def forget_proposals(
    palace: Palace, *, facts: Collection[int] = (), drawers: Collection[int] = ()
) -> None:
    """Delete proposals about these facts or drawers, given by key, decided or not.

    Proposals quote texts. Call it before the facts and drawers are deleted.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM palace_proposal p WHERE palace_id = %(palace)s AND (
                EXISTS (SELECT FROM palace_proposalfact f WHERE f.palace_id = %(palace)s
                        AND f.proposal_id = p.id AND f.fact_id = ANY(%(facts)s))
                OR EXISTS (SELECT FROM palace_proposalquote q WHERE q.palace_id = %(palace)s
                           AND q.proposal_id = p.id AND q.drawer_id = ANY(%(drawers)s)))
            """,
            {"palace": palace.pk, "facts": list(facts), "drawers": list(drawers)},
        )

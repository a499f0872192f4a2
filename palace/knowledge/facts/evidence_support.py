"""Retire facts when the messages that support them go to the trash, and restore them after."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.utils import timezone

from language.errors import FactConflict
from palace.knowledge.facts.fact_chains import append_to_chain
from palace.knowledge.facts.fact_edits import delete_rows, forget_proposals, reactivate
from palace.knowledge.facts.fact_writer import record_event, retire
from palace.knowledge.facts.ingestion_options import Scope
from palace.knowledge.facts.late_statements import reconcile, scopes_of
from palace.knowledge.facts.statement_replay import ENDED_BY
from palace.models import Drawer, Evidence, Fact, FactEvent, FactQuerySet, Palace, Statement
from palace.storage.indexing.fact_vectors import forget_texts
from palace.storage.indexing.spaces import active_space

BY_TRASH = Scope("trash")
GONE = "the words it rested on were moved to the trash"
WORDS_ARE_BACK = "the words it rests on are back"
OPEN_AGAIN = "the words that had ended it were moved to the trash"
ENDED_AGAIN = "the words that end it are back"


def retire_unsupported(palace: Palace, facts: FactQuerySet) -> list[Fact]:
    """Retire facts whose evidence goes to the trash; returns them. The caller locks the palace."""
    dropped = list(facts.order_by("pk"))
    now = timezone.now()
    for fact in dropped:
        retire(fact, Fact.Fate.UNFOUNDED, now)
        record_event(
            palace, BY_TRASH, FactEvent.Kind.DELETE, fact.memory, fact.text, None, why=GONE, at=now
        )
    return dropped


def reopen_ended(
    palace: Palace,
    scopes: Iterable[tuple[str, str]],
    dropped: Iterable[Fact] = (),
    deleted: Iterable[Fact] = (),
) -> None:
    """Reopen facts that were ended by messages now in the trash. The caller locks the palace.

    Args:
        scopes: Agents and runs of the statements read from them.
        dropped: Facts retired with them; those without a statement are not replayed.
        deleted: Facts that a user deleted, with all versions of their memories.
    """
    gone = {fact.memory for fact in deleted}
    for fact in (*dropped, *deleted):
        if fact.opened_by_id is None:
            _reopen_replaced(palace, fact, gone)
    for agent, run in scopes:
        scope = replace(BY_TRASH, agent=agent, run=run)
        reconcile(palace, active_space(), scope, opened=OPEN_AGAIN, closed=GONE)


def _reopen_replaced(palace: Palace, dropped: Fact, gone: Collection[UUID]) -> None:
    """Reopen what a fact replaced when it was recorded, if its own words are not in the trash.

    Args:
        gone: Memories that stay deleted.
    """
    if dropped.supersedes_id is None:
        return
    words = Evidence.objects.filter(palace=palace, fact=OuterRef("pk"), drawer__trashed_at=None)
    replaced = (
        Fact.objects.within(palace)
        .filter(
            Exists(words),
            pk=dropped.supersedes_id,
            retired_at=dropped.recorded_at,
            fate__in=ENDED_BY,
            closed_by=None,
        )
        .exclude(memory__in=gone)
    )
    for fact in replaced:
        with suppress(FactConflict):
            reactivate(palace, fact, BY_TRASH, why=OPEN_AGAIN)


def restore_supported(palace: Palace, drawers: Collection[int]) -> list[Fact]:
    """Restore facts that were retired with these drawers, given by key, and end what they ended.

    Facts replaced meanwhile stay as they are. The caller locks the palace.
    """
    restored: list[Fact] = []
    for agent, run in scopes_of(palace, Drawer.objects.filter(pk__in=drawers)):
        scope = replace(BY_TRASH, agent=agent, run=run)
        work = reconcile(palace, active_space(), scope, opened=WORDS_ARE_BACK, closed=ENDED_AGAIN)
        restored += work.opened
    return restored + _restore_written_by_hand(palace, drawers)


def _restore_written_by_hand(palace: Palace, drawers: Collection[int]) -> list[Fact]:
    """Restore facts that come from no statement."""
    words = Evidence.objects.filter(palace=palace, fact=OuterRef("pk"), drawer__in=drawers)
    dropped = Fact.objects.within(palace).filter(
        Exists(words), fate=Fact.Fate.UNFOUNDED, opened_by=None
    )
    newest = dropped.order_by("memory", "-recorded_at", "-pk").distinct("memory")
    restored: list[Fact] = []
    for fact in newest:
        reopened = _end_reopened(palace, fact)
        try:
            again = reactivate(palace, fact, BY_TRASH, why=WORDS_ARE_BACK)
        except FactConflict:
            continue
        again.settled_at = fact.settled_at
        again.save(update_fields=["settled_at"])
        for ended in reopened:
            append_to_chain(palace, again, ended)
        restored.append(again)
    return restored


def _end_reopened(palace: Palace, fact: Fact) -> list[Fact]:
    """End what was reopened when a fact lost its words, before the fact is restored."""
    if fact.supersedes_id is None:
        return []
    reopened = (
        Fact.objects.within(palace)
        .active()
        .filter(
            supersedes__in=(fact.pk, fact.supersedes_id),
            opened_by=None,
            recorded_at__gte=fact.retired_at,
        )
    )
    ended = list(reopened.order_by("pk"))
    for row in ended:
        now = timezone.now()
        retire(row, Fact.Fate.SUPERSEDED, now, ended_at=fact.valid_from)
        record_event(
            palace, BY_TRASH, FactEvent.Kind.DELETE, row.memory, row.text, None, why=ENDED_AGAIN,
            at=now,
        )  # fmt: skip
    return ended


def delete_supported_by(palace: Palace, drawers: Collection[int]) -> list[int]:
    """Delete every version supported by these drawers alone, and its texts in histories.

    Call it in the transaction that deletes the drawers, before it deletes them.

    Returns:
        Keys of the entities that the facts were about.
    """
    forget_proposals(palace, drawers=drawers)
    statements = Statement.objects.filter(palace=palace, drawer__in=drawers)
    forget_texts({statement.content["text"] for statement in statements})
    words = Evidence.objects.filter(palace=palace, fact=OuterRef("pk"))
    doomed = Fact.objects.within(palace).filter(
        Exists(words.filter(drawer__in=drawers)), ~Exists(words.exclude(drawer__in=drawers))
    )
    rows = list(doomed.order_by("pk"))
    delete_rows(palace, rows)
    about = {fact.subject_id for fact in rows} | {fact.object_entity_id for fact in rows}
    return [key for key in about if key is not None]

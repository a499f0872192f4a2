"""Facts whose support changes: words go to the trash and return, or the owner reviews them.

Facts are retired with the messages that support them, and restored after. What is unsure becomes
certain if its owner accepts it, and is forgotten if not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from language.errors import FactConflict
from palace.knowledge.facts.fact_chains import append_to_chain
from palace.knowledge.facts.fact_edits import delete, delete_rows, forget_proposals, reactivate
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_writer import record_event, retire
from palace.knowledge.facts.late_statements import reconcile, scopes_of
from palace.knowledge.facts.statement_replay import ENDED_BY
from palace.knowledge.facts.unsure_facts import BY_REVIEW, CERTAIN
from palace.models import Drawer, Evidence, Fact, FactEvent, FactQuerySet, Palace, Statement
from palace.storage.indexing.fact_vectors import forget_texts
from palace.storage.indexing.spaces import active_space

BY_TRASH = Scope("trash")
GONE = "the words it rested on were moved to the trash"
WORDS_ARE_BACK = "the words it rests on are back"
OPEN_AGAIN = "the words that had ended it were moved to the trash"
ENDED_AGAIN = "the words that end it are back"
ACCEPTED = "you accepted it"
ENDED_BY_ACCEPTED = "it ends by what you accepted"
REJECTED = "you rejected it"
DECISION_UNDONE = "your decision was undone"


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


def accept_unsure(palace: Palace, facts: Sequence[Fact]) -> dict[int, dict[str, Any]]:
    """Make unsure facts certain, and judge the statements of their scopes again.

    The caller locks the palace.

    Args:
        facts: Active rows that come from statements.

    Returns:
        By key of a row: the former confidences of its statements (`weighed`), and the keys of the
        facts that it ended (`ended`).
    """
    weighed = {fact.pk: _weigh(_statements_behind(palace, fact)) for fact in facts}
    _judge_again(palace, facts, ACCEPTED, ENDED_BY_ACCEPTED)
    done = {}
    for fact in facts:
        keys = [key for key, _ in weighed[fact.pk]]
        rows = Fact.objects.within(palace)
        ended = rows.filter(closed_by__in=keys, fate__in=ENDED_BY).exclude(opened_by__in=keys)
        done[fact.pk] = {
            "weighed": weighed[fact.pk],
            "ended": list(ended.order_by("pk").values_list("pk", flat=True)),
        }
    _note_decided(palace, facts, ACCEPTED)
    return done


def undo_accepted(palace: Palace, facts: Sequence[Fact], weighed: Iterable[Any]) -> None:
    """Make facts unsure again, and give back what they ended. The caller locks the palace.

    Args:
        weighed: What `accept_unsure` returned of them.
    """
    former = dict(weighed)
    _weigh(Statement.objects.filter(palace=palace, pk__in=former), former)
    _judge_again(palace, facts, DECISION_UNDONE, DECISION_UNDONE)
    _note_decided(palace, facts, DECISION_UNDONE)


def reject_unsure(palace: Palace, facts: Iterable[Fact]) -> None:
    """Forget unsure facts."""
    for fact in facts:
        delete(palace, fact.memory, _reviewed(fact), why=REJECTED)


def undo_rejected(palace: Palace, facts: Sequence[Fact]) -> None:
    """Let rejected facts wait again, as their statements say. The caller locks the palace."""
    keys = [fact.pk for fact in facts]
    rejected = Fact.objects.within(palace).filter(pk__in=keys, fate=Fact.Fate.DELETED)
    # As when a message returns from the trash.
    rejected.update(fate=Fact.Fate.UNFOUNDED)
    _judge_again(palace, facts, DECISION_UNDONE, DECISION_UNDONE)


def _statements_behind(palace: Palace, fact: Fact) -> list[Statement]:
    """The statement that a fact comes from, and others of its messages that say the same."""
    said = Statement.objects.filter(palace=palace, agent=fact.agent, run=fact.run)
    words = Evidence.objects.filter(palace=palace, fact=fact)
    again = Q(drawer__in=words.values("drawer"), content__text=fact.text)
    return list(said.filter(again | Q(pk=fact.opened_by_id)).order_by("pk"))


def _weigh(
    statements: Iterable[Statement], confidences: Mapping[int, float] | None = None
) -> list[tuple[int, float]]:
    """Set the confidence of statements, by default certain; returns keys and former ones."""
    former = []
    for statement in statements:
        former.append((statement.pk, statement.content["confidence"]))
        sure = CERTAIN if confidences is None else confidences[statement.pk]
        statement.content["confidence"] = sure
        statement.save(update_fields=["content"])
    return former


def _judge_again(palace: Palace, facts: Iterable[Fact], opened: str, closed: str) -> None:
    for agent, run in sorted({(fact.agent, fact.run) for fact in facts}):
        scope = replace(BY_REVIEW, agent=agent, run=run)
        reconcile(palace, active_space(), scope, opened=opened, closed=closed)


def _note_decided(palace: Palace, facts: Iterable[Fact], why: str) -> None:
    """Add to the histories of active facts whose sentence is the same, so that only this tells."""
    active = Fact.objects.within(palace).active()
    for fact in facts:
        if active.filter(memory=fact.memory, text=fact.text).exists():
            kind, scope = FactEvent.Kind.UPDATE, _reviewed(fact)
            record_event(palace, scope, kind, fact.memory, None, fact.text, why=why)


def _reviewed(fact: Fact) -> Scope:
    return replace(BY_REVIEW, agent=fact.agent, run=fact.run)

"""Facts written without a reader or judge: corrections, and messages stored as memories.

Corrections are by hand or for accepted proposals, and can be undone: facts are merged, refiled,
ended, or get another subject. Rows are never overwritten, only closed. A message stored as a memory
keeps its text unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Min
from django.utils import timezone

from language.english.judging import words_of
from language.errors import FactConflict
from language.facts import NOTE, USER, Candidate, Judgement, Thing, Verdict, Words
from language.transcripts import Role, Transcript, Turn
from palace.knowledge.facts.fact_chains import append_to_chain
from palace.knowledge.facts.fact_edits import copy_of, current, reactivate, replace_version
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_learning import Learnt, filed_unread, mark_read
from palace.knowledge.facts.fact_writer import (
    Writer,
    earliest,
    record_event,
    retire,
    take_over_evidence,
)
from palace.knowledge.facts.row_conversion import Decision, content_of
from palace.models import Drawer, Entity, Evidence, Fact, FactEvent, Palace
from palace.storage.indexing.fact_vectors import copy_vectors, fill_missing
from palace.storage.indexing.spaces import active_space

WRONG = "it is wrong"
OUTDATED = "it is over"
UNDONE = "an edit was undone"
BY_DREAM = Scope("dream")
SAID_ONCE = "another fact says the same"
PUT_BACK = "a dream's change was undone"
# Roles whose messages become memories; instructions and answers of tools are only filed.
VERBATIM_ROLES: tuple[Role, ...] = ("user", "assistant")
AS_IT_IS = "stored as it is"


def renamed(text: str, old: Entity, new: Entity) -> str:
    """The sentence with the name of `new` wherever it has a name of `old`."""
    names = sorted({old.name, *old.aliases} - {""}, key=len, reverse=True)
    named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")
    return named.sub(lambda _: new.name, text)


def end_on(palace: Palace, memory: UUID, moment: datetime, scope: Scope) -> Fact:
    """End a fact that was true until `moment`; returns the row, which is inactive now.

    Raises:
        NoSuchFact: the palace has no such memory, or it is inactive.
    """
    with transaction.atomic():
        palace.lock()
        fact = current(palace, memory)
        now = timezone.now()
        retire(fact, Fact.Fate.ENDED, now, ended_at=moment)
        record_event(
            palace, scope, FactEvent.Kind.DELETE, memory, fact.text, None, why=OUTDATED, at=now
        )
    return fact


def undo_end(palace: Palace, fact: Fact, until: datetime | None, scope: Scope) -> Fact:
    """Reactivate what `end_on` ended. Idempotent.

    Args:
        until: Its end before that.

    Raises:
        FactConflict: something else is active in its place.
    """
    with transaction.atomic():
        palace.lock()
        active = Fact.objects.within(palace).active().filter(memory=fact.memory).first()
        if active is not None and active.supersedes_id == fact.pk:
            return active
        fact = Fact.objects.within(palace).get(pk=fact.pk)
        again = reactivate(palace, fact, scope, why=UNDONE)
        if again.valid_to != until:
            again.valid_to = until
            again.save(update_fields=["valid_to"])
    return again


def undo_edit(palace: Palace, before: Fact, after: Fact, scope: Scope) -> Fact:
    """Put a version back in place of the one that an edit made of it. Idempotent.

    Raises:
        NoSuchFact: the memory is inactive.
        FactConflict: it was changed again since, or another fact is active in its place.
    """
    with transaction.atomic():
        palace.lock()
        active = current(palace, before.memory)
        if content_of(active) == content_of(before):
            return active
        if active.pk != after.pk:
            raise FactConflict(active.text)
        new = copy_of(before)
        new.supersedes, new.recorded_at = active, timezone.now()
        replace_version(palace, active, new, scope)
        copy_vectors(before, new)
    fill_missing(palace, active_space(), [new])
    return new


def by_person(fact: Fact) -> Scope:
    """The scope of a person's changes, with the fact's agent and run."""
    return replace(Scope("person"), agent=fact.agent, run=fact.run)


@dataclass(frozen=True, slots=True)
class Wording:
    """The text and filing of the fact that replaces others."""

    text: str
    category: str
    tags: tuple[str, ...] = ()


def merge(palace: Palace, facts: Sequence[Fact], wording: Wording) -> Fact:
    """Replace facts by one row with all their evidence, valid since the earliest of them.

    The row is the next version of the oldest memory, whose id stays; its structure is that of
    the fact with the most similar text. A single fact is reworded or refiled.
    """
    now = timezone.now()
    first, like = _made_first(palace, facts), _worded_most_like(facts, wording.text)
    new = copy_of(like)
    new.memory, new.supersedes, new.recorded_at = first.memory, first, now
    new.text, new.category, new.tags = wording.text, wording.category, list(wording.tags)
    new.confidence = max(fact.confidence for fact in facts)
    new.valid_from = earliest(*(fact.valid_from for fact in facts))
    new.valid_to = _last_of([fact.valid_to for fact in facts])
    for fact in facts:
        new.metadata = {**fact.metadata, **new.metadata}
        retire(fact, Fact.Fate.REFINED, now)
    new.save()
    for fact in facts:
        take_over_evidence(fact, new)
        append_to_chain(palace, new, fact)
    if new.text == like.text:
        copy_vectors(like, new)
    _note_merged(palace, facts, first, new)
    return new


def end(fact: Fact, fate: Fact.Fate, why: str, *, ended_at: datetime | None = None) -> None:
    """Retire a fact, with an event; see `palace.knowledge.facts.fact_writer.retire`."""
    now = timezone.now()
    retire(fact, fate, now, ended_at=ended_at)
    record_event(
        fact.palace, _scope_of(fact), FactEvent.Kind.DELETE, fact.memory, fact.text, None, why=why,
        at=now,
    )  # fmt: skip


def take_back(made: Fact) -> None:
    """Retire the result of a merge as never true."""
    end(made, Fact.Fate.CORRECTED, PUT_BACK)


def reactivate_merged(palace: Palace, fact: Fact, valid_to: datetime | None) -> Fact:
    """Reactivate a row that was merged or ended, with its previous end.

    Raises:
        FactConflict: another fact is active in its place; says which.
    """
    again = reactivate(palace, fact, _scope_of(fact), why=PUT_BACK)
    if again.valid_to != valid_to:
        again.valid_to = valid_to
        again.save(update_fields=["valid_to"])
    return again


def pass_on_evidence(made: Fact, sources: Sequence[Fact], heir: Fact) -> None:
    """Give evidence that a merged fact got since the merge, and no source has, to `heir`."""
    words = Evidence.objects.filter(palace=made.palace_id)
    known = set(words.filter(fact__in=sources).values_list("drawer_id", "start"))
    Evidence.objects.bulk_create(
        [
            Evidence(
                palace_id=one.palace_id,
                fact=heir,
                drawer_id=one.drawer_id,
                start=one.start,
                end=one.end,
            )
            for one in words.filter(fact=made)
            if (one.drawer_id, one.start) not in known
        ],
        ignore_conflicts=True,
    )


def _made_first(palace: Palace, facts: Sequence[Fact]) -> Fact:
    """The fact whose memory, counting all versions, is the oldest."""
    rows = Fact.objects.within(palace).filter(memory__in=[fact.memory for fact in facts])
    began = dict(rows.order_by().values_list("memory").annotate(Min("recorded_at")))
    return min(facts, key=lambda fact: (began[fact.memory], fact.pk))


def _worded_most_like(facts: Sequence[Fact], text: str) -> Fact:
    wanted = words_of(text)

    def likeness(fact: Fact) -> tuple[bool, float]:
        words = words_of(fact.text)
        return fact.text == text, len(words & wanted) / max(len(words | wanted), 1)

    return max(facts, key=likeness)


def _note_merged(palace: Palace, facts: Sequence[Fact], first: Fact, new: Fact) -> None:
    for fact in facts:
        if fact is first:
            kind, text, why = FactEvent.Kind.UPDATE, new.text, _changed(first, new)
        else:
            kind, text, why = FactEvent.Kind.DELETE, None, SAID_ONCE
        record_event(
            palace, _scope_of(fact), kind, fact.memory, fact.text, text, why=why, at=new.recorded_at
        )


def _changed(before: Fact, after: Fact) -> str:
    if before.category != after.category and before.text == after.text:
        return f"filed under {after.category}"
    return "said once for all"


def _scope_of(fact: Fact) -> Scope:
    return replace(BY_DREAM, agent=fact.agent, run=fact.run)


def _last_of(moments: Sequence[datetime | None]) -> datetime | None:
    """The latest; None (no end) comes after any."""
    known = [moment for moment in moments if moment is not None]
    return max(known) if len(known) == len(moments) else None


def store_verbatim(
    palace: Palace,
    turns: Sequence[Turn],
    *,
    agent: str = "",
    run: str = "",
    conversation: str,
    metadata: Mapping[str, Any] | None = None,
    source: str = "api",
) -> Learnt:
    """File messages, and make each one a memory with its text; arguments as `remember`.

    Filing and writing are one transaction: a worker would extract from what is only filed.
    """
    space, scope = active_space(), Scope(source, agent, run, metadata or {})
    filed = tuple(replace(turn, only_for=agent) for turn in turns)
    with transaction.atomic():
        palace.lock()
        transcript = Transcript(source, run or conversation, "", filed, agent, is_request=True)
        drawers = filed_unread(palace, transcript)
        kept = mark_read(palace, drawers)
        writer = Writer(palace, space, scope, drawers)
        written = [
            writer.write(_decision(drawer, place), drawer.text, None)
            for place, drawer in enumerate(drawers)
            if drawer.pk in kept and drawer.role in VERBATIM_ROLES and drawer.text.strip()
        ]
    lines = [line for line in written if line]
    fill_missing(palace, space, [line.fact for line in lines if line.fact])
    return Learnt(lines)


def _decision(drawer: Drawer, place: int) -> Decision:
    candidate = Candidate(
        type="fact",
        subject=Thing(drawer.speaker or USER, "person"),
        predicate=NOTE,
        object="",
        text=drawer.text,
        words=(Words(place, 0, len(drawer.text)),),
        confidence=1.0,
    )
    return Decision(Judgement(Verdict.ADD, candidate, why=AS_IT_IS))

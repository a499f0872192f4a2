"""Write judgements: end or supersede the old fact, open the new one, record the history of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

from django.utils import timezone

from language.facts import (
    Candidate,
    Change,
    Judgement,
    Thing,
    Verdict,
    Words,
    category_of,
    is_single,
    is_unsure,
)
from language.storable import LABEL_LENGTH
from palace.knowledge.facts.fact_chains import append_to_chain
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.row_conversion import Decision, entity_for
from palace.models import (
    PREDICATE_LENGTH,
    Drawer,
    EmbeddingSpace,
    Entity,
    Evidence,
    Fact,
    FactEvent,
    FactQuerySet,
    Palace,
    Statement,
)
from palace.storage.indexing import fact_vectors
from palace.storage.indexing.fact_vectors import Vector

_FATES = {
    Change.SHIFT: Fact.Fate.SUPERSEDED,
    Change.REFINEMENT: Fact.Fate.REFINED,
    Change.CORRECTION: Fact.Fate.CORRECTED,
}
# Columns that closing a row writes.
CLOSING = ("retired_at", "fate", "valid_to", "closed_by")
WAS_BEFORE = "it was so before"
TOOK_ITS_PLACE = "another fact took its place"


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """The outcome of one statement.

    Attributes:
        memory: The memory that was created, changed, or says so already.
        fact: Its current row; None if it is deleted.
    """

    verdict: Verdict
    memory: UUID
    fact: Fact | None
    old_text: str = ""
    new_text: str = ""
    why: str = ""


class Writer:
    """Write decisions on statements from drawers, in one transaction that locks the palace."""

    def __init__(
        self, palace: Palace, space: EmbeddingSpace, scope: Scope, drawers: Sequence[Drawer]
    ) -> None:
        self._palace, self._space, self._scope = palace, space, scope
        self._drawers = drawers
        self._now = timezone.now()
        self._statement: Statement | None = None

    def write(
        self,
        decision: Decision,
        text: str,
        vector: Vector | None,
        statement: Statement | None = None,
    ) -> StatementOutcome | None:
        """Write one decision; None if a statement denies an unknown fact.

        Args:
            text: The text of `vector`; the judge may have changed the candidate's.
            statement: The stored statement; None for facts that do not come from messages.
        """
        self._statement = statement
        judgement, row = decision.judgement, decision.row
        if judgement.candidate.text != text:
            vector = None
        if judgement.verdict is Verdict.NONE:
            return self._support(judgement, row) if row else None
        if judgement.verdict is Verdict.DELETE:
            return self._delete(judgement, row) if row else None
        if judgement.verdict is Verdict.UPDATE and row is not None:
            return self._update(judgement, row, vector)
        return self._add(judgement, vector)

    def _support(self, judgement: Judgement, fact: Fact) -> StatementOutcome:
        self._rest_on(fact, judgement.candidate.words)
        return StatementOutcome(
            Verdict.NONE, fact.memory, fact, fact.text, fact.text, why=judgement.why
        )

    def _delete(self, judgement: Judgement, fact: Fact) -> StatementOutcome:
        corrected = judgement.change is Change.CORRECTION
        fate = Fact.Fate.CORRECTED if corrected else Fact.Fate.ENDED
        self._retire(fact, fate, self._ended_at(judgement.candidate))
        self._note(FactEvent.Kind.DELETE, fact.memory, fact.text, None, judgement.why)
        return StatementOutcome(Verdict.DELETE, fact.memory, None, fact.text, "", judgement.why)

    def _add(self, judgement: Judgement, vector: Vector | None) -> StatementOutcome:
        candidate = judgement.candidate
        fact = self._row(candidate, uuid4())
        rivals: Sequence[Fact] = []
        if _is_over(candidate, self._said_at(candidate)):
            fact.retired_at, fact.fate = self._now, Fact.Fate.ENDED
            fact.closed_by = self._statement
        elif self._statement is not None and (known := self._rivals(fact)):
            return self._take_the_place(judgement, known[0], vector)
        else:
            # Without a statement, it was judged against a part of the facts on purpose.
            rivals = self._retire_rivals(fact, self._ended_at(candidate))
        self._open(fact, candidate.words, vector)
        self._append_to_chain(fact, rivals)
        self._note(FactEvent.Kind.ADD, fact.memory, None, fact.text, judgement.why)
        return StatementOutcome(
            judgement.verdict, fact.memory, fact, new_text=fact.text, why=judgement.why
        )

    def _take_the_place(
        self, judgement: Judgement, rival: Fact, vector: Vector | None
    ) -> StatementOutcome:
        """Write a new value of a single-valued fact whose judge missed the known one."""
        if rival.text == judgement.candidate.text:
            return self._support(judgement, rival)
        meant = replace(
            judgement,
            verdict=Verdict.UPDATE,
            change=Change.CORRECTION if judgement.candidate.corrects else Change.SHIFT,
            text="",
            why=TOOK_ITS_PLACE,
        )
        return self._update(meant, rival, vector)

    def _update(self, judgement: Judgement, old: Fact, vector: Vector | None) -> StatementOutcome:
        candidate = judgement.candidate
        new = self._row(candidate, old.memory, judgement.text)
        new.supersedes = old
        if judgement.change is Change.SHIFT and _is_earlier(new, old):
            return self._was_before(candidate, new, old, vector)
        if judgement.change is Change.REFINEMENT:
            new.valid_from = earliest(old.valid_from, candidate.valid_from or old.valid_from)
        if judgement.change is Change.CORRECTION:
            new.valid_from = candidate.valid_from or old.valid_from
        ended_at = new.valid_from or self._ended_at(candidate)
        self._retire(old, _FATES[judgement.change], ended_at)
        rivals = self._retire_rivals(new, ended_at)
        self._open(new, candidate.words, vector if new.text == candidate.text else None)
        self._append_to_chain(new, rivals)
        if judgement.change is Change.REFINEMENT:
            self._take_over(old, new)
        self._note(FactEvent.Kind.UPDATE, new.memory, old.text, new.text, judgement.why)
        return StatementOutcome(Verdict.UPDATE, new.memory, new, old.text, new.text, judgement.why)

    def _was_before(
        self, candidate: Candidate, earlier: Fact, current: Fact, vector: Vector | None
    ) -> StatementOutcome:
        """Write a fact from an older conversation, read later: it was true before."""
        earlier.supersedes = None
        earlier.valid_to = _first_end(candidate.valid_to, current.valid_from)
        earlier.retired_at, earlier.fate = self._now, Fact.Fate.SUPERSEDED
        earlier.closed_by = self._statement
        self._open(earlier, candidate.words, vector)
        self._append_to_chain(current, [earlier])
        self._note(FactEvent.Kind.ADD, earlier.memory, None, earlier.text, WAS_BEFORE)
        return StatementOutcome(
            Verdict.COEXIST, earlier.memory, earlier, new_text=earlier.text, why=WAS_BEFORE
        )

    def _row(self, candidate: Candidate, memory: UUID, text: str = "") -> Fact:
        thing = candidate.thing
        predicate = candidate.predicate[:PREDICATE_LENGTH]
        return Fact(
            palace=self._palace,
            memory=memory,
            type=candidate.type,
            subject=self._entity(candidate.subject, predicate),
            predicate=predicate,
            object=candidate.object,
            object_entity=self._entity(thing) if thing else None,
            aspect=candidate.aspect[:LABEL_LENGTH],
            stance=candidate.stance,
            text=text or candidate.text,
            confidence=candidate.confidence,
            category=(candidate.category or category_of(predicate))[:LABEL_LENGTH],
            tags=list(candidate.tags),
            metadata=dict(self._scope.metadata),
            agent=self._scope.agent,
            run=self._scope.run,
            single=is_single(predicate) and not is_unsure(candidate),
            valid_from=self._since(candidate),
            valid_to=candidate.valid_to,
            recorded_at=self._now,
            opened_by=self._statement,
            settled_at=None if self._statement else self._now,
        )

    def _retire_rivals(self, fact: Fact, ended_at: datetime) -> Sequence[Fact]:
        """Retire other active values of a single-valued fact: the judge may have erred."""
        rivals = self._rivals(fact)
        for other in rivals:
            self._retire(other, Fact.Fate.SUPERSEDED, ended_at)
            self._note(FactEvent.Kind.DELETE, other.memory, other.text, None, TOOK_ITS_PLACE)
        return rivals

    def _rivals(self, fact: Fact) -> Sequence[Fact]:
        return list(rivals_of(self._palace, fact)) if fact.single else []

    def _append_to_chain(self, fact: Fact, replaced: Sequence[Fact]) -> None:
        for each in replaced:
            append_to_chain(self._palace, fact, each)

    def _entity(self, thing: Thing, predicate: str = "") -> Entity:
        return entity_for(self._palace, thing, predicate)

    def _retire(self, fact: Fact, fate: Fact.Fate, ended_at: datetime | None) -> None:
        close(fact, fate, self._now, ended_at=ended_at)
        fact.closed_by = self._statement
        self._save(fact, *CLOSING)

    def _save(self, fact: Fact, *fields: str) -> None:
        fact.save(update_fields=list(fields))

    def _take_over(self, old: Fact, new: Fact) -> None:
        take_over_evidence(old, new)

    def _open(self, fact: Fact, words: Sequence[Words], vector: Vector | None) -> None:
        fact.save()
        self._rest_on(fact, words)
        if vector is not None:
            fact_vectors.store(self._palace, self._space, {fact.pk: vector})

    def _rest_on(self, fact: Fact, words: Sequence[Words]) -> None:
        Evidence.objects.bulk_create(
            [
                Evidence(
                    palace=self._palace,
                    fact=fact,
                    drawer=self._drawers[span.turn],
                    start=span.start,
                    end=span.end,
                )
                for span in words
            ],
            ignore_conflicts=True,
        )

    def _since(self, candidate: Candidate) -> datetime | None:
        """When it became true; None (unknown) if it is over and the start was not said."""
        said_at = self._said_at(candidate)
        if candidate.valid_from is None and _is_over(candidate, said_at):
            return None
        return candidate.valid_from or said_at

    def _ended_at(self, candidate: Candidate) -> datetime:
        """When the fact that a statement denies or replaces ended.

        What was stated as past ended when it was said, or before; never when it was imported.
        """
        said_at = self._said_at(candidate)
        if candidate.valid_to is not None and _is_over(candidate, said_at):
            return candidate.valid_to
        return candidate.valid_from or said_at

    def _said_at(self, candidate: Candidate) -> datetime:
        return self._drawers[candidate.words[0].turn].said_at

    def _note(
        self, event: FactEvent.Kind, memory: UUID, old: str | None, new: str | None, why: str
    ) -> None:
        record_event(self._palace, self._scope, event, memory, old, new, why=why, at=self._now)


def rivals_of(palace: Palace, fact: Fact) -> FactQuerySet:
    """Active facts with the key of a single-valued fact."""
    return (
        Fact.objects.within(palace)
        .active()
        .filter(
            subject=fact.subject,
            predicate=fact.predicate,
            aspect=fact.aspect,
            agent=fact.agent,
            run=fact.run,
        )
    )


def retire(fact: Fact, fate: Fact.Fate, at: datetime, *, ended_at: datetime | None = None) -> None:
    """Retire a fact. If it was true, it ends at `ended_at`, or earlier if it ended before."""
    close(fact, fate, at, ended_at=ended_at)
    fact.closed_by = None
    fact.save(update_fields=CLOSING)


def close(fact: Fact, fate: Fact.Fate, at: datetime, *, ended_at: datetime | None = None) -> None:
    """`retire` without writing it."""
    fact.retired_at, fact.fate = at, fate
    if fate in Fact.WAS_TRUE:
        ends = [moment for moment in (fact.valid_to, ended_at or at) if moment is not None]
        fact.valid_to = max(min(ends), fact.valid_from) if fact.valid_from else min(ends)


def record_event(
    palace: Palace,
    scope: Scope,
    kind: FactEvent.Kind,
    memory: UUID,
    old_text: str | None,
    new_text: str | None,
    *,
    why: str = "",
    at: datetime | None = None,
) -> None:
    """Save an event of a memory's history."""
    event(palace, scope, kind, memory, old_text, new_text, why=why, at=at).save(force_insert=True)


def event(
    palace: Palace,
    scope: Scope,
    kind: FactEvent.Kind,
    memory: UUID,
    old_text: str | None,
    new_text: str | None,
    *,
    why: str = "",
    at: datetime | None = None,
) -> FactEvent:
    """An unsaved event of a memory's history."""
    return FactEvent(
        palace=palace,
        memory=memory,
        event=kind,
        old_text=old_text,
        new_text=new_text,
        why=why[:LABEL_LENGTH],
        by=scope.by,
        agent=scope.agent,
        run=scope.run,
        at=at or timezone.now(),
    )


def _is_over(candidate: Candidate, said_at: datetime) -> bool:
    """Whether it was stated as past. Events stay active although they are over."""
    ends = candidate.valid_to
    return ends is not None and ends <= said_at and candidate.type != "event"


def _is_earlier(new: Fact, old: Fact) -> bool:
    if new.valid_from is None or old.valid_from is None:
        return new.valid_from is None
    return new.valid_from < old.valid_from


def _first_end(*moments: datetime | None) -> datetime | None:
    """The earliest of the known ends; None if there is none."""
    return min((moment for moment in moments if moment is not None), default=None)


def earliest(*moments: datetime | None) -> datetime | None:
    """The earliest; None is earlier than any."""
    known = [moment for moment in moments if moment is not None]
    return min(known) if len(known) == len(moments) else None


def take_over_evidence(old: Fact, new: Fact) -> None:
    """Copy the evidence of the old row to the new one."""
    Evidence.objects.bulk_create(
        [
            Evidence(
                palace_id=one.palace_id,
                fact=new,
                drawer_id=one.drawer_id,
                start=one.start,
                end=one.end,
            )
            for one in Evidence.objects.filter(palace=old.palace_id, fact=old)
        ],
        ignore_conflicts=True,
    )

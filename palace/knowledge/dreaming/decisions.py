"""Decide on proposals: accept, reject or undo, one by one or in bulk. All are idempotent.

Undoing a decision on an unsure fact lets it wait again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from language.errors import PalaceError
from language.facts import PREDICATES, USER, Candidate, Judgement, Thing, Verdict, Words
from palace.knowledge.dreaming.proposals import ADDING, After, Kind, after_of
from palace.knowledge.facts import direct_writes, evidence_support
from palace.knowledge.facts.direct_writes import Wording
from palace.knowledge.facts.fact_chains import append_to_chain
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_writer import Writer
from palace.knowledge.facts.row_conversion import Decision
from palace.knowledge.facts.unsure_facts import link
from palace.models import (
    Fact,
    Palace,
    Proposal,
    ProposalFact,
    ProposalQuerySet,
    ProposalQuote,
)
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space

NOISE = "it said nothing worth keeping"
OVER = "it is over"
ANOTHER_HOLDS = "another fact took its place"
_SOURCE, _BESIDE, _MADE = ProposalFact.Role.SOURCE, ProposalFact.Role.BESIDE, ProposalFact.Role.MADE
# The predicate of anti-patterns, used for nothing else.
AVOIDS = "wants_avoided"
PERSON, DREAM = "person", "dream"
Status = Proposal.Status


class BadProposal(PalaceError):
    """The decision is not possible; the message says what to do."""

    code = "bad_proposal"


class StaleProposal(BadProposal):
    """The facts or quotes of the proposal have changed."""

    code = "stale_proposal"

    def __init__(self) -> None:
        super().__init__(
            "What this was about has changed since it was proposed. Nothing was done; "
            "if there is still something to it, the next dream will say so."
        )


@dataclass(frozen=True, slots=True)
class Decided:
    """The result of a bulk decision.

    Attributes:
        done: Those that are as it was wished.
        refused: What was wrong with the others, a sentence each.
    """

    done: tuple[Proposal, ...]
    refused: tuple[str, ...] = ()


def accept(palace: Palace, proposal: Proposal, *, by: str = PERSON) -> Proposal:
    """Apply the proposed change. Call it outside of a transaction.

    Raises:
        StaleProposal: what it rests on has changed; it is marked so.
        BadProposal: it was rejected, or undone, or is gone.
    """
    made = None
    with transaction.atomic():
        palace.lock()
        present = _present(palace, proposal)
        if present.status == Status.ACCEPTED:
            return present
        if present.status != Status.PROPOSED:
            raise _not_open(present)
        if not Proposal.objects.within(palace).waiting().filter(pk=present.pk).exists():
            present.status = Status.STALE
        else:
            made = carry_out(palace, present)
            _decide(present, Status.ACCEPTED, by)
        present.save()
    if present.status == Status.STALE:
        raise StaleProposal
    if made is not None:
        fill_missing(palace, active_space(), [made])
    return present


@transaction.atomic
def reject(palace: Palace, proposal: Proposal, *, by: str = PERSON) -> Proposal:
    """Reject the proposal; it is not proposed again.

    Raises:
        BadProposal: it was accepted, which can be undone, or is gone.
    """
    palace.lock()
    present = _present(palace, proposal)
    if present.status in (Status.REJECTED, Status.UNDONE):
        return present
    if present.status == Status.ACCEPTED:
        raise BadProposal("This was accepted. Undo it, and it counts as rejected.")
    _decide(present, Status.REJECTED, by)
    present.save()
    if present.kind == Kind.UNSURE:
        sources = facts_of(present, _SOURCE)
        evidence_support.reject_unsure(
            palace, [fact for fact in sources if fact.retired_at is None]
        )
    return present


def undo(palace: Palace, proposal: Proposal, *, by: str = PERSON) -> Proposal:
    """Restore the facts from before the acceptance; a rejected proposal is open again.

    What was undone is not proposed again. Call it outside of a transaction.

    Raises:
        ChangedSince, FactConflict: too much has changed to go back; nothing was done.
        BadProposal: nothing was decided yet, or it is gone.
    """
    with transaction.atomic():
        palace.lock()
        present = _present(palace, proposal)
        if present.status == Status.UNDONE:
            return present
        if present.status not in (Status.ACCEPTED, Status.REJECTED):
            raise BadProposal("Nothing was decided about this, so that there is nothing to undo.")
        again = []
        if present.kind == Kind.UNSURE:
            _undo_unsure(palace, [present])
            return present
        if present.status == Status.REJECTED:
            present.status, present.decided_at, present.decided_by = Status.PROPOSED, None, ""
        else:
            again = take_back(palace, present)
            _decide(present, Status.UNDONE, by)
        present.save()
    fill_missing(palace, active_space(), again)
    return present


def accept_all(palace: Palace, uuids: Collection[UUID], *, by: str = PERSON) -> Decided:
    """Accept proposals one by one, oldest first; each succeeds or fails independently.

    Unsure facts are judged together.
    """
    with transaction.atomic():
        palace.lock()
        together = list(_unsure(palace, uuids).waiting().order_by("pk"))
        _accept_unsure(palace, together)
        for proposal in together:
            _decide(proposal, Status.ACCEPTED, by)
            proposal.save()
    return _each(palace, uuids, lambda proposal: accept(palace, proposal, by=by))


def reject_all(palace: Palace, uuids: Collection[UUID], *, by: str = PERSON) -> Decided:
    """Reject proposals; see `accept_all`."""
    return _each(palace, uuids, lambda proposal: reject(palace, proposal, by=by))


def undo_all(palace: Palace, uuids: Collection[UUID], *, by: str = PERSON) -> Decided:
    """Undo decisions, latest first; see `accept_all`."""
    with transaction.atomic():
        palace.lock()
        decided = _unsure(palace, uuids).filter(status__in=(Status.ACCEPTED, Status.REJECTED))
        together = list(decided.order_by("-decided_at", "-pk"))
        _undo_unsure(palace, together)
    others = set(uuids) - {proposal.uuid for proposal in together}
    undone = _each(palace, others, lambda one: undo(palace, one, by=by), last_first=True)
    return Decided((*together, *undone.done), undone.refused)


def _unsure(palace: Palace, uuids: Collection[UUID]) -> ProposalQuerySet:
    return Proposal.objects.within(palace).filter(uuid__in=uuids, kind=Kind.UNSURE)


def _accept_unsure(palace: Palace, proposals: Sequence[Proposal]) -> None:
    """Make the facts of waiting suggestions certain, and store how to undo it."""
    sources = {proposal.pk: facts_of(proposal, _SOURCE) for proposal in proposals}
    facts = [fact for each in sources.values() for fact in each]
    done = evidence_support.accept_unsure(palace, facts)
    for proposal in proposals:
        [fact] = sources[proposal.pk]
        proposal.applied = done[fact.pk]
        link(proposal, done[fact.pk]["ended"], _BESIDE)


def _undo_unsure(palace: Palace, proposals: Sequence[Proposal]) -> None:
    """Let the facts of decided suggestions wait again; stale where nothing says so any more."""
    facts = {proposal.pk: facts_of(proposal, _SOURCE) for proposal in proposals}
    accepted = [one for one in proposals if one.status == Status.ACCEPTED]
    rejected = [one for one in proposals if one.status == Status.REJECTED]
    for proposal in proposals:
        proposal.status = Status.STALE
        proposal.save()
    weighed = [each for one in accepted for each in (one.applied or {}).get("weighed", ())]
    evidence_support.undo_rejected(palace, [fact for one in rejected for fact in facts[one.pk]])
    evidence_support.undo_accepted(
        palace, [fact for one in accepted for fact in facts[one.pk]], weighed
    )
    for proposal in proposals:
        proposal.refresh_from_db()


def _each(
    palace: Palace,
    uuids: Collection[UUID],
    decide: Callable[[Proposal], Proposal],
    *,
    last_first: bool = False,
) -> Decided:
    done, refused = [], []
    order = ("-decided_at", "-pk") if last_first else ("pk",)
    for proposal in Proposal.objects.within(palace).filter(uuid__in=uuids).order_by(*order):
        try:
            done.append(decide(proposal))
        except PalaceError as error:
            refused.append(str(error))
    return Decided(tuple(done), tuple(refused))


def _present(palace: Palace, proposal: Proposal) -> Proposal:
    """The current row, locked."""
    present = Proposal.objects.within(palace).filter(pk=proposal.pk).first()
    if present is None:
        raise BadProposal("This proposal is not here any more: words it rested on were deleted.")
    return present


def _not_open(proposal: Proposal) -> BadProposal:
    if proposal.status == Status.STALE:
        return StaleProposal()
    if proposal.status == Status.REJECTED:
        return BadProposal("This was rejected. Undo that first, and then accept it.")
    return BadProposal("This was undone. What it proposed can be done by hand, under Facts.")


def _decide(proposal: Proposal, status: Status, by: str) -> None:
    proposal.status, proposal.decided_by = status, by
    proposal.decided_at = timezone.now()


class ChangedSince(PalaceError):
    """The fact that a change created has been changed since."""

    code = "proposal_changed_since"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"“{text}” came of this, and was changed since; change that fact by itself instead."
        )


@dataclass(frozen=True, slots=True)
class Applied:
    """
    Attributes:
        ends: The rows that became inactive, by key, each with its previous end.
        made: The new row, by key.
    """

    ends: dict[int, datetime | None]
    made: int | None = None

    def record(self) -> dict[str, Any]:
        return {
            "ends": [
                [key, moment.isoformat() if moment else None] for key, moment in self.ends.items()
            ],
            "made": self.made,
        }

    @classmethod
    def read(cls, record: dict[str, Any]) -> Applied:
        ends = {
            key: datetime.fromisoformat(moment) if moment else None
            for key, moment in record["ends"]
        }
        return cls(ends, record["made"])


def carry_out(palace: Palace, proposal: Proposal) -> Fact | None:
    """Apply a proposal, and store how to undo it; returns the new fact, if any."""
    kind, after = Kind(proposal.kind), after_of(proposal.payload)
    if kind is Kind.UNSURE:
        _accept_unsure(palace, [proposal])
        return None
    sources, beside = facts_of(proposal, _SOURCE), facts_of(proposal, _BESIDE)
    ends = {fact.pk: fact.valid_to for fact in sources}
    made = None
    if kind in ADDING and after is not None:
        made = _add(palace, proposal, kind, after)
    elif after is not None:
        wording = Wording(after.text, after.category, after.tags)
        made = direct_writes.merge(palace, sources, wording)
    else:
        _end(kind, sources, beside)
    if made is not None:
        ProposalFact.objects.create(palace=palace, proposal=proposal, fact=made, role=_MADE)
    proposal.applied = Applied(ends, made.pk if made else None).record()
    return made


def take_back(palace: Palace, proposal: Proposal) -> list[Fact]:
    """Undo an applied proposal; returns the reactivated facts.

    Raises:
        ChangedSince: what came of it is not as it was made.
        FactConflict: another fact is active in place of an ended one.
    """
    applied = Applied.read(proposal.applied or {"ends": [], "made": None})
    made = _still_made(palace, applied)
    if made is not None:
        direct_writes.take_back(made)
    rows = Fact.objects.within(palace).select_related("palace").in_bulk(list(applied.ends))
    again = [
        direct_writes.reactivate_merged(palace, rows[key], ended)
        for key, ended in applied.ends.items()
        if key in rows
    ]
    heir = next((fact for fact in again if made and fact.memory == made.memory), None)
    if made is not None and heir is not None:
        direct_writes.pass_on_evidence(made, list(rows.values()), heir)
    return again


def facts_of(proposal: Proposal, role: ProposalFact.Role) -> list[Fact]:
    about = ProposalFact.objects.filter(palace=proposal.palace_id, proposal=proposal, role=role)
    return [one.fact for one in about.select_related("fact__palace").order_by("pk")]


def _still_made(palace: Palace, applied: Applied) -> Fact | None:
    if applied.made is None:
        return None
    made = Fact.objects.within(palace).select_related("palace").filter(pk=applied.made).first()
    if made is not None and made.retired_at is not None:
        raise ChangedSince(made.text)
    return made


def _end(kind: Kind, sources: Sequence[Fact], beside: Sequence[Fact]) -> None:
    for fact in sources:
        if kind is Kind.CONTRADICTION:
            since = beside[0].valid_from if beside else None
            direct_writes.end(fact, Fact.Fate.SUPERSEDED, ANOTHER_HOLDS, ended_at=since)
            if beside:
                append_to_chain(fact.palace, beside[0], fact)
        elif kind is Kind.OUTDATED:
            direct_writes.end(fact, Fact.Fate.ENDED, OVER)
        else:
            direct_writes.end(fact, Fact.Fate.DELETED, NOISE)


def _add(palace: Palace, proposal: Proposal, kind: Kind, after: After) -> Fact | None:
    """Add a fact with the quoted messages as evidence."""
    quotes = ProposalQuote.objects.filter(palace=palace, proposal=proposal)
    words = sorted(
        quotes.select_related("drawer"), key=lambda one: (one.drawer.said_at, one.drawer_id)
    )
    candidate = Candidate(
        type="preference",
        subject=Thing(USER, "person"),
        predicate=AVOIDS if kind is Kind.ANTI_PATTERN else PREDICATES["prefers"].name,
        object=after.text,
        text=after.text,
        words=tuple(Words(turn, one.start, one.end) for turn, one in enumerate(words)),
        category=after.category,
        tags=after.tags,
    )
    scope = Scope(direct_writes.BY_DREAM.by, metadata=after.metadata)
    writer = Writer(palace, active_space(), scope, [one.drawer for one in words])
    added = Decision(Judgement(Verdict.ADD, candidate, why=after.category))
    line = writer.write(added, after.text, None)
    return line.fact if line else None

"""Decisions on proposals: accept, reject, undo, one by one or many. Each twice is as once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from palace.errors import PalaceError
from palace.knowledge.dreaming.execution import carry_out, take_back
from palace.models import Palace, Proposal
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space

PERSON, DREAM = "person", "dream"

Status = Proposal.Status


class BadProposal(PalaceError):
    """What was asked of a proposal cannot be done; the sentence says what to do."""

    code = "bad_proposal"


class StaleProposal(BadProposal):
    """What it rests on is not so any more."""

    code = "stale_proposal"

    def __init__(self) -> None:
        super().__init__(
            "What this was about has changed since it was proposed. Nothing was done; "
            "if there is still something to it, the next dream will say so."
        )


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of many.

    Attributes:
        done: Those that are as it was wished.
        refused: What was wrong with the others, a sentence each.
    """

    done: tuple[Proposal, ...]
    refused: tuple[str, ...] = ()


def accept(palace: Palace, proposal: Proposal, *, by: str = PERSON) -> Proposal:
    """Change what is held as it proposes. Call it outside of a transaction.

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
    """Let everything be as it is. It is not proposed again.

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
    return present


def undo(palace: Palace, proposal: Proposal, *, by: str = PERSON) -> Proposal:
    """Hold again what was held before it was accepted; or wait again, if it was rejected.

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
        if present.status == Status.REJECTED:
            present.status, present.decided_at, present.decided_by = Status.PROPOSED, None, ""
        else:
            again = take_back(palace, present)
            _decide(present, Status.UNDONE, by)
        present.save()
    fill_missing(palace, active_space(), again)
    return present


def accept_all(palace: Palace, uuids: Collection[UUID], *, by: str = PERSON) -> Decided:
    """Accept these one after the other, the oldest first; each is done or not by itself."""
    return _each(palace, uuids, lambda proposal: accept(palace, proposal, by=by))


def reject_all(palace: Palace, uuids: Collection[UUID], *, by: str = PERSON) -> Decided:
    """Reject these; see `accept_all`."""
    return _each(palace, uuids, lambda proposal: reject(palace, proposal, by=by))


def undo_all(palace: Palace, uuids: Collection[UUID], *, by: str = PERSON) -> Decided:
    """Undo these, what was decided last first; see `accept_all`."""
    return _each(palace, uuids, lambda proposal: undo(palace, proposal, by=by), last_first=True)


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
    """As it is now."""
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

"""What a dream finds, and its proposals to the user; each change is proposed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.crypto import salted_hmac

from language.english.judging.wording import words_of
from palace.models import (
    Activity,
    Drawer,
    Fact,
    Palace,
    Proposal,
    ProposalFact,
    ProposalQuote,
)

MadeBy = Literal["model", "rules"]
Kind = Proposal.Kind
# Kinds that add a fact and change none.
ADDING = (Kind.ANTI_PATTERN, Kind.PREFERENCE)
# Maximum per dream, so that a user can read them; the next dream proposes the rest.
MOST_PROPOSED = 300

_SOURCE, _BESIDE = ProposalFact.Role.SOURCE, ProposalFact.Role.BESIDE


@dataclass(frozen=True, slots=True)
class Quote:
    """Characters `start` to `end` (exclusive) of a drawer, given by its key."""

    drawer: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class After:
    """The fact after the change."""

    text: str
    category: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def after_of(payload: Mapping[str, Any]) -> After | None:
    """Read the `after` of a `Finding.payload`."""
    after = payload["after"]
    if after is None:
        return None
    return After(after["text"], after["category"], tuple(after["tags"]), after["metadata"])


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Attributes:
        sources: Facts that become inactive when it is accepted.
        beside: Facts that stay active, and are the reason.
        quotes: The quoted messages, if it is about no fact.
        after: None if nothing replaces the sources.
        why: A few words for the user.
    """

    kind: Kind
    made_by: MadeBy
    sources: tuple[Fact, ...] = ()
    beside: tuple[Fact, ...] = ()
    quotes: tuple[Quote, ...] = ()
    after: After | None = None
    why: str = ""

    def fingerprint(self) -> UUID:
        """Identify the change: the same for the same change of the same statements.

        It does not depend on the model's wording, which differs each night, and does not reveal
        any text.
        """
        if self.kind in ADDING and self.after is not None:
            parts = [self.after.category, *sorted(words_of(self.after.text))]
        else:
            parts = sorted(f"{fact.memory} {fact.text}" for fact in (*self.sources, *self.beside))
        content = "\0".join(f"{len(part)} {part}" for part in (self.kind.value, *parts))
        return UUID(salted_hmac("proposals", content, algorithm="sha256").hexdigest()[:32])

    def payload(self) -> dict[str, Any]:
        return {
            "before": [_described(fact) for fact in (*self.sources, *self.beside)],
            "after": _as_json(self.after) if self.after else None,
            "why": self.why,
            "made_by": self.made_by,
        }


def _as_json(after: After) -> dict[str, Any]:
    return {
        "text": after.text,
        "category": after.category,
        "tags": list(after.tags),
        "metadata": dict(after.metadata),
    }


def _described(fact: Fact) -> dict[str, Any]:
    return {
        "memory": str(fact.memory),
        "text": fact.text,
        "category": fact.category,
        "tags": fact.tags,
        "valid_from": fact.valid_from.isoformat() if fact.valid_from else None,
    }


def same_scope(facts: Sequence[Fact]) -> bool:
    """Whether all facts have the same agent and run."""
    return len({(fact.agent, fact.run) for fact in facts}) <= 1


def propose(palace: Palace, findings: Sequence[Finding], dream: Activity) -> Counter[str]:
    """Store new findings as proposals; returns their number by kind. The caller locks the palace.

    Skips findings that were decided on or are open, and those whose facts or quotes are gone.
    Stale proposals are renewed when they are found again.
    """
    made: Counter[str] = Counter()
    known = _known(palace, findings)
    for finding in findings:
        if made.total() >= MOST_PROPOSED:
            break
        if finding.fingerprint() in known:
            continue
        if not _stands(palace, finding) or _is_taken(palace, finding):
            continue
        _write(palace, finding, dream)
        known.add(finding.fingerprint())
        made[finding.kind.value] += 1
    return made


def mark_stale(palace: Palace) -> int:
    """Mark proposals whose facts or quotes have changed as stale; returns their number."""
    proposed = Proposal.objects.within(palace).filter(status=Proposal.Status.PROPOSED)
    waiting = Proposal.objects.within(palace).waiting().values("pk")
    return proposed.exclude(pk__in=waiting).update(status=Proposal.Status.STALE)


def _known(palace: Palace, findings: Sequence[Finding]) -> set[UUID]:
    """Fingerprints of proposals that are open or decided."""
    there = Proposal.objects.within(palace).exclude(status=Proposal.Status.STALE)
    fingerprints = [finding.fingerprint() for finding in findings]
    return set(there.filter(fingerprint__in=fingerprints).values_list("fingerprint", flat=True))


def _stands(palace: Palace, finding: Finding) -> bool:
    facts = [fact.pk for fact in (*finding.sources, *finding.beside)]
    active = Fact.objects.within(palace).active().filter(pk__in=facts).count()
    drawers = {quote.drawer for quote in finding.quotes}
    kept = Drawer.objects.within(palace).kept().filter(pk__in=drawers).count()
    return active == len(facts) and kept == len(drawers)


def _is_taken(palace: Palace, finding: Finding) -> bool:
    """Whether a proposal of the same kind is open for one of its facts."""
    if not finding.sources:
        return False
    among = ProposalFact.objects.filter(
        palace=palace, proposal=OuterRef("pk"), role=_SOURCE, fact__in=finding.sources
    )
    waiting = Proposal.objects.within(palace).waiting().filter(kind=finding.kind)
    others = waiting.exclude(fingerprint=finding.fingerprint())
    return others.filter(Exists(among)).exists()


def _write(palace: Palace, finding: Finding, dream: Activity) -> None:
    """Create a proposal, or renew the stale one."""
    fingerprint = finding.fingerprint()
    proposal = Proposal.objects.within(palace).filter(fingerprint=fingerprint).first()
    if proposal is None:
        proposal = Proposal(palace=palace, fingerprint=fingerprint, kind=finding.kind)
    proposal.status, proposal.payload = Proposal.Status.PROPOSED, finding.payload()
    proposal.dream, proposal.made_at = dream, timezone.now()
    proposal.save()
    _write_ground(palace, proposal, finding)


def _write_ground(palace: Palace, proposal: Proposal, finding: Finding) -> None:
    """Link facts and quotes, in place of those of a stale proposal."""
    for rows in (ProposalFact, ProposalQuote):
        rows._default_manager.filter(palace=palace, proposal=proposal).delete()
    roles = [(fact, _SOURCE) for fact in finding.sources]
    roles += [(fact, _BESIDE) for fact in finding.beside]
    ProposalFact.objects.bulk_create(
        ProposalFact(palace=palace, proposal=proposal, fact=fact, role=role) for fact, role in roles
    )
    ProposalQuote.objects.bulk_create(
        [
            ProposalQuote(
                palace=palace,
                proposal=proposal,
                drawer_id=quote.drawer,
                start=quote.start,
                end=quote.end,
            )
            for quote in finding.quotes
        ],
        ignore_conflicts=True,
    )

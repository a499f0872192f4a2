"""Unsure facts: stored beside the others, never recalled, and suggested to the owner.

The owner's decisions on them are in `evidence_support`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.crypto import salted_hmac

from language.english.judging import words_of
from language.english.judging.rules import judge_by_rules
from language.facts import HEARSAY, Change, Thing, Verdict
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_writer import record_event, retire
from palace.knowledge.facts.row_conversion import KnownRows, candidate_of, decided
from palace.models import Fact, FactEvent, Palace, Proposal, ProposalFact

# The confidence of what the owner has accepted.
CERTAIN = 1.0
BY_REVIEW = Scope("person")
REJECTED_BEFORE = "you rejected the same before"
# Known facts that the suggestions of one page are compared with, the latest.
MOST_KNOWN = 1000
_OF_A_NAME = "The conversation does not say who that is."
_IN_DOUBT = "The words leave room for doubt."
_UNSURE, _SOURCE = Proposal.Kind.UNSURE, ProposalFact.Role.SOURCE
_Status = Proposal.Status


def suggest_unsure(palace: Palace) -> None:
    """Suggest the unsure facts about which no suggestion is. The caller locks the palace.

    What says the same as one that was rejected is forgotten at once. A suggestion whose fact has
    another version follows it.
    """
    links = ProposalFact.objects.filter(palace=palace, proposal__palace=palace, role=_SOURCE)
    suggested = links.filter(fact=OuterRef("pk"), proposal__kind=_UNSURE)
    unsure = Fact.objects.within(palace).unsure().exclude(Exists(suggested))
    facts = list(unsure.select_related("subject", "palace").order_by("pk"))
    if not facts:
        return
    prints = {fact.pk: fingerprint(fact) for fact in facts}
    known = {
        one.fingerprint: one
        for one in Proposal.objects.within(palace).filter(fingerprint__in=set(prints.values()))
    }
    still = set(
        links.filter(proposal__in=list(known.values()), fact__retired_at=None).values_list(
            "proposal", flat=True
        )
    )
    for fact in facts:
        before = known.get(prints[fact.pk])
        if before is None:
            known[prints[fact.pk]] = _suggested(palace, fact, prints[fact.pk])
        elif before.status == _Status.REJECTED:
            _forget(fact)
        elif before.pk not in still:
            _renew(before, fact)


def fingerprint(fact: Fact) -> UUID:
    """The same for the same statement about the same subject; it does not reveal any text."""
    words = sorted(words_of(fact.text))
    parts = (fact.agent, fact.run, fact.subject.slug, fact.predicate, *words)
    content = "\0".join(f"{len(part)} {part}" for part in parts)
    return UUID(salted_hmac("unsure facts", content, algorithm="sha256").hexdigest()[:32])


def _suggested(palace: Palace, fact: Fact, print_: UUID) -> Proposal:
    proposal = Proposal(palace=palace, kind=_UNSURE, fingerprint=print_)
    _renew(proposal, fact)
    return proposal


def _renew(proposal: Proposal, fact: Fact) -> None:
    """Let a suggestion wait, about this version of its fact."""
    about = {
        "text": fact.text,
        "category": fact.category,
        "tags": fact.tags,
        "metadata": fact.metadata,
    }
    why = _OF_A_NAME if fact.confidence == HEARSAY else _IN_DOUBT
    proposal.payload = {"before": [], "after": about, "why": why, "made_by": "rules"}
    proposal.status, proposal.made_at = _Status.PROPOSED, timezone.now()
    proposal.decided_at, proposal.decided_by, proposal.applied = None, "", None
    proposal.save()
    link(proposal, [fact.pk], _SOURCE, instead=True)


def link(
    proposal: Proposal, facts: Iterable[int], role: ProposalFact.Role, *, instead: bool = False
) -> None:
    """Link facts, given by key, with a suggestion.

    Args:
        instead: In place of those that are linked so far.
    """
    palace = proposal.palace_id
    if instead:
        ProposalFact.objects.filter(palace=palace, proposal=proposal).delete()
    ProposalFact.objects.bulk_create(
        [
            ProposalFact(palace_id=palace, proposal=proposal, fact_id=key, role=role)
            for key in facts
        ],
        ignore_conflicts=True,
    )


def _forget(fact: Fact) -> None:
    now = timezone.now()
    retire(fact, Fact.Fate.DELETED, now)
    record_event(
        fact.palace, replace(BY_REVIEW, agent=fact.agent, run=fact.run), FactEvent.Kind.DELETE,
        fact.memory, fact.text, None, why=REJECTED_BEFORE, at=now,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effect:
    """What accepting an unsure fact would change, as far as known now.

    Attributes:
        ends: The fact that it would end or replace.
        stays: A fact of which it would be what was so before: that one was said later.
    """

    ends: Fact | None = None
    stays: Fact | None = None


def effects_of(palace: Palace, facts: Sequence[Fact]) -> dict[int, Effect]:
    """The effect of accepting each of these unsure facts, by key, in one query for all.

    The rules judge each as if it were certain. Accepting judges again, in the order of saying.

    Args:
        facts: Fetched with `subject` and `opened_by__drawer`.
    """
    if not facts:
        return {}
    slugs = {fact.subject.slug for fact in facts}
    rows = Fact.objects.within(palace).active().filter(subject__slug__in=slugs)
    latest = rows.select_related("subject", "object_entity", "opened_by__drawer")
    known = list(latest.order_by("-recorded_at", "-pk")[:MOST_KNOWN])
    return {fact.pk: _effect(fact, known) for fact in facts}


def _effect(fact: Fact, known: Sequence[Fact]) -> Effect:
    statement = fact.opened_by
    if statement is None:
        return Effect()
    about = (fact.subject.slug, fact.agent, fact.run)
    others = [
        (row, 0.0)
        for row in known
        if row.pk != fact.pk and (row.subject.slug, row.agent, row.run) == about
    ]
    rows = KnownRows(sorted(others, key=lambda row: row[0].said_order, reverse=True))
    subject = Thing(fact.subject.name, fact.subject.kind)
    said = replace(candidate_of(statement), subject=subject, text=fact.text, confidence=CERTAIN)
    judgement = decided(statement, said, rows.known) or judge_by_rules(said, rows.known)
    other = rows.decision(judgement).row
    if other is None or judgement.verdict not in (Verdict.UPDATE, Verdict.DELETE):
        return Effect()
    if other.said_order > fact.said_order:
        is_before = judgement.verdict is Verdict.UPDATE and judgement.change is Change.SHIFT
        return Effect(stays=other) if is_before else Effect()
    return Effect(ends=other)

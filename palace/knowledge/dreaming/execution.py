"""Carrying out what was accepted, and taking it back, by way of `palace.knowledge.facts`.

For those who hold the palace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from language.candidate import USER, Candidate, Thing, Words
from language.judging import Judgement, Verdict
from language.predicates import PREDICATES
from palace.errors import PalaceError
from palace.knowledge.dreaming.findings import ADDING, After, Kind, after_of
from palace.knowledge.facts import consolidation
from palace.knowledge.facts.consolidation import Wording
from palace.knowledge.facts.fact_writer import Writer
from palace.knowledge.facts.known_rows import Decision
from palace.knowledge.facts.scope import Scope
from palace.models import Fact, Palace, Proposal, ProposalFact, ProposalQuote
from palace.storage.indexing.spaces import active_space

NOISE = "it said nothing worth keeping"
OVER = "it is over"
ANOTHER_HOLDS = "another fact took its place"

_SOURCE, _BESIDE, _MADE = ProposalFact.Role.SOURCE, ProposalFact.Role.BESIDE, ProposalFact.Role.MADE
# What an anti-pattern says of the user; no other predicate means it.
AVOIDS = "wants_avoided"


class ChangedSince(PalaceError):
    """What a change made has been changed again."""

    code = "proposal_changed_since"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"“{text}” came of this, and was changed since; change that fact by itself instead."
        )


@dataclass(frozen=True, slots=True)
class Applied:
    """
    Attributes:
        ends: The rows that are held no longer, by key, each with the end it had before.
        made: The row that came of it, by key.
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
    """Do what it proposes, and note how to undo it; returns the fact that came of it."""
    kind, after = Kind(proposal.kind), after_of(proposal.payload)
    sources, beside = facts_of(proposal, _SOURCE), facts_of(proposal, _BESIDE)
    ends = {fact.pk: fact.valid_to for fact in sources}
    made = None
    if kind in ADDING and after is not None:
        made = _add(palace, proposal, kind, after)
    elif after is not None:
        wording = Wording(after.text, after.category, after.tags)
        made = consolidation.merge(palace, sources, wording)
    else:
        _end(kind, sources, beside)
    if made is not None:
        ProposalFact.objects.create(palace=palace, proposal=proposal, fact=made, role=_MADE)
    proposal.applied = Applied(ends, made.pk if made else None).record()
    return made


def take_back(palace: Palace, proposal: Proposal) -> list[Fact]:
    """Hold again what it ended, as it was; returns those facts.

    Raises:
        ChangedSince: what came of it is not as it was made.
        FactConflict: something else is held in the place of what was ended.
    """
    applied = Applied.read(proposal.applied or {"ends": [], "made": None})
    made = _still_made(palace, applied)
    if made is not None:
        consolidation.take_back(made)
    rows = Fact.objects.within(palace).select_related("palace").in_bulk(list(applied.ends))
    again = [
        consolidation.hold_as_before(palace, rows[key], ended)
        for key, ended in applied.ends.items()
        if key in rows
    ]
    heir = next((fact for fact in again if made and fact.memory == made.memory), None)
    if made is not None and heir is not None:
        consolidation.hand_on_evidence(made, list(rows.values()), heir)
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
            consolidation.end(fact, Fact.Fate.SUPERSEDED, ANOTHER_HOLDS, ended_at=since)
        elif kind is Kind.OUTDATED:
            consolidation.end(fact, Fact.Fate.ENDED, OVER)
        else:
            consolidation.end(fact, Fact.Fate.DELETED, NOISE)


def _add(palace: Palace, proposal: Proposal, kind: Kind, after: After) -> Fact | None:
    """A fact of its own, on the words that are quoted."""
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
    scope = Scope(consolidation.BY_DREAM.by, metadata=after.metadata)
    writer = Writer(palace, active_space(), scope, [one.drawer for one in words])
    added = Decision(Judgement(Verdict.ADD, candidate, why=after.category))
    line = writer.write(added, after.text, None)
    return line.fact if line else None

"""Measure which planted groups a dream finds, and its false positives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

from bench.dreams.planted import Group, Planted
from language.facts import category_of
from language.slugs import slug_of
from language.transcripts import Transcript, Turn
from palace.knowledge.dreaming import dream
from palace.models import Drawer, Entity, Evidence, Fact, Palace, Proposal
from palace.storage import file_transcript
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space

BEGAN = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)
LATER = timedelta(days=90)
_TYPES = {
    "likes": Fact.Type.PREFERENCE,
    "dislikes": Fact.Type.PREFERENCE,
    "hates": Fact.Type.PREFERENCE,
    "prefers": Fact.Type.PREFERENCE,
    "visited": Fact.Type.EVENT,
}
_STANCES = {"likes": "positive", "dislikes": "negative", "hates": "negative"}
EXPECTED = {"merge": "duplicates", "contradiction": "contradictions"}


@dataclass(frozen=True, slots=True)
class Measured:
    """
    Attributes:
        missed: The texts of groups that were not found; `false` those of wrong pairs.
    """

    kind: str
    planted: int
    found: int
    missed: tuple[tuple[str, ...], ...]
    false: tuple[tuple[str, ...], ...]

    def figures(self) -> dict[str, Any]:
        pairs = self.found + len(self.false)
        return {
            "planted": self.planted,
            "found": self.found,
            "false": len(self.false),
            "recall": round(self.found / self.planted, 3) if self.planted else None,
            "precision": round(self.found / pairs, 3) if pairs else None,
        }


def plant(palace: Palace, groups: Sequence[Group]) -> None:
    """Store all facts, each with its own source; those of a group were said weeks apart."""
    rows: list[tuple[Planted, datetime]] = []
    for number, group in enumerate(groups):
        for place, fact in enumerate(group.facts):
            rows.append((fact, BEGAN + timedelta(minutes=number) + place * LATER))
    turns = tuple(
        Turn(str(number), "user", f"{fact.text}.", at) for number, (fact, at) in enumerate(rows)
    )
    file_transcript(palace, Transcript("bench", "planted", "", turns))
    drawers = {one.external_id: one for one in Drawer.objects.within(palace)}
    people = {
        name: Entity.objects.create(palace=palace, kind="person", slug=slug_of(name), name=name)
        for name in sorted({fact.about for fact, _ in rows})
    }
    facts = [_row(palace, people[fact.about], fact, at) for fact, at in rows]
    Fact.objects.bulk_create(facts)
    Evidence.objects.bulk_create(
        Evidence(palace=palace, fact=fact, drawer=drawers[str(number)], start=0, end=len(fact.text))
        for number, fact in enumerate(facts)
    )
    fill_missing(palace, active_space(), facts)


def _row(palace: Palace, person: Entity, fact: Planted, at: datetime) -> Fact:
    return Fact(
        palace=palace,
        type=_TYPES.get(fact.predicate, Fact.Type.FACT),
        subject=person,
        predicate=fact.predicate,
        object=fact.object,
        stance=_STANCES.get(fact.predicate, ""),
        text=fact.text,
        confidence=0.8,
        category=category_of(fact.predicate),
        # An unknown origin: otherwise the database would refuse the duplicate.
        single=False,
        valid_from=at,
        recorded_at=at,
    )


def measure(palace: Palace, groups: Sequence[Group], *, with_model: bool) -> list[Measured]:
    """Dream, and compare the proposals with the planted groups."""
    dream(palace, with_model=with_model)
    proposed = list(_pairs(palace))
    return [_measured(kind, proposed, groups) for kind in EXPECTED]


def _measured(
    kind: str, proposed: Sequence[tuple[str, frozenset[str]]], groups: Sequence[Group]
) -> Measured:
    wanted = {group.texts: group for group in groups if group.kind == EXPECTED[kind]}
    pairs = {pair for of, pair in proposed if of == kind}
    return Measured(
        kind,
        len(wanted),
        len(wanted.keys() & pairs),
        tuple(tuple(f.text for f in group.facts) for t, group in wanted.items() if t not in pairs),
        tuple(tuple(sorted(pair)) for pair in sorted(pairs - wanted.keys(), key=sorted)),
    )


def _pairs(palace: Palace) -> Iterator[tuple[str, frozenset[str]]]:
    """All pairs of facts within a proposal."""
    for proposal in Proposal.objects.within(palace).filter(kind__in=EXPECTED).order_by("pk"):
        texts = [one["text"] for one in proposal.payload["before"]]
        for pair in combinations(texts, 2):
            yield proposal.kind, frozenset(pair)

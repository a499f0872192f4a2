"""Facts that go to the trash along with drawers: before a place goes there, and afterwards."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from palace.curation.trash import Place, drawers_in, moment_of
from palace.models import Activity, Fact, Palace
from palace.queries.facts import facts_supported_only_by, latest_versions

# The most facts named; the others are counted.
NAMED = 12


@dataclass(frozen=True, slots=True)
class LostFacts:
    """The facts that lose their last evidence with some drawers.

    Attributes:
        named: The first of them.
        total: How many there are.
    """

    named: list[Fact]
    total: int

    @property
    def others(self) -> int:
        return self.total - len(self.named)


def facts_to_lose(place: Place) -> LostFacts:
    """Active facts with evidence in this place alone, the newest first."""
    palace = place.palace
    facts = facts_supported_only_by(palace, drawers_in(place).kept()).order_by(
        "-recorded_at", "-pk"
    )
    named = list(facts[: NAMED + 1])
    return LostFacts(named[:NAMED], facts.count() if len(named) > NAMED else len(named))


def facts_lost(palace: Palace, batches: Collection[int]) -> dict[int, LostFacts]:
    """By the key of a batch, the facts that went with it and are still inactive."""
    noted = Activity.objects.filter(
        palace=palace, kind=Activity.Kind.DRAWERS_TRASHED, detail__batch__in=list(batches)
    )
    memories: Mapping[int, list[str]] = {
        detail["batch"]: detail["facts"]
        for detail in noted.values_list("detail", flat=True)
        if "facts" in detail
    }
    latest = _latest(palace, [memory for each in memories.values() for memory in each])
    found = {
        key: [
            fact
            for memory in each
            if (fact := latest.get(UUID(memory))) and _went_in(fact, moment_of(key))
        ]
        for key, each in memories.items()
    }
    return {key: LostFacts(facts[:NAMED], len(facts)) for key, facts in found.items() if facts}


def _latest(palace: Palace, memories: Collection[str]) -> dict[UUID, Fact]:
    """The latest version by memory."""
    return {fact.memory: fact for fact in latest_versions(palace, memories)}


def _went_in(fact: Fact, at: datetime | None) -> bool:
    """Whether it lost its evidence, or was deleted together with the drawers of this batch."""
    deleted_too = fact.fate == Fact.Fate.DELETED and fact.retired_at == at
    return fact.fate == Fact.Fate.UNFOUNDED or deleted_too

"""Facts that go to the trash along with the drawers they rest on: named before, and after."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from palace.curation.trash import Place, drawers_in, moment_of
from palace.knowledge.facts.evidence_support import resting_only_on
from palace.models import Activity, Fact, Palace

# Of more the rest is counted.
NAMED = 12


@dataclass(frozen=True, slots=True)
class Along:
    """
    Attributes:
        named: The first of them.
        total: How many there are.
    """

    named: list[Fact]
    total: int

    @property
    def others(self) -> int:
        return self.total - len(self.named)


def going_along(place: Place) -> Along:
    """What is held and rests on the drawers of a place alone, the newest first."""
    palace = place.palace
    facts = resting_only_on(palace, drawers_in(place).kept()).order_by("-recorded_at", "-pk")
    named = list(facts[: NAMED + 1])
    return Along(named[:NAMED], facts.count() if len(named) > NAMED else len(named))


def went_along(palace: Palace, batches: Collection[int]) -> dict[int, Along]:
    """By the key of a batch, what went with it and has not come back."""
    noted = Activity.objects.filter(
        palace=palace, kind=Activity.Kind.DRAWERS_TRASHED, detail__batch__in=list(batches)
    )
    memories: Mapping[int, list[str]] = {
        detail["batch"]: detail["facts"]
        for detail in noted.values_list("detail", flat=True)
        if "facts" in detail
    }
    dropped = _dropped(palace, [memory for each in memories.values() for memory in each])
    found = {
        key: [
            fact
            for memory in each
            if (fact := dropped.get(UUID(memory))) and _went_in(fact, moment_of(key))
        ]
        for key, each in memories.items()
    }
    return {key: Along(facts[:NAMED], len(facts)) for key, facts in found.items() if facts}


def _dropped(palace: Palace, memories: Collection[str]) -> dict[UUID, Fact]:
    """The latest version by memory."""
    versions = Fact.objects.within(palace).filter(memory__in=list(memories))
    latest = versions.order_by("memory", "-recorded_at", "-pk").distinct("memory")
    return {fact.memory: fact for fact in latest}


def _went_in(fact: Fact, at: datetime | None) -> bool:
    """Whether it lost its words, or was deleted together with the drawers of this batch."""
    with_words = fact.fate == Fact.Fate.DELETED and fact.retired_at == at
    return fact.fate == Fact.Fate.UNFOUNDED or with_words

"""The facts that a recall put before a model, as they were then, with the words they rest on."""

from __future__ import annotations

from dataclasses import dataclass

from palace.models import Fact, RecollectionTrace
from palace.views.evidence import with_words


@dataclass(frozen=True, slots=True)
class GivenFacts:
    """
    Attributes:
        facts: Best first.
        gone: How many more there were, which are deleted for good by now.
    """

    facts: list[Fact]
    gone: int

    @property
    def total(self) -> int:
        return len(self.facts) + self.gone


def given_facts(trace: RecollectionTrace) -> GivenFacts:
    """Each in the version that was known when it was given."""
    memories = [given["memory"] for given in trace.facts]
    if not memories:
        return GivenFacts([], 0)
    versions = Fact.objects.within(trace.palace).filter(memory__in=memories)
    then = versions.filter(recorded_at__lte=trace.created_at)
    latest = then.order_by("memory", "-recorded_at", "-pk").distinct("memory")
    rows = with_words(Fact.objects.filter(pk__in=latest.values("pk")), at_most=1)
    found = {str(fact.memory): fact for fact in rows}
    kept = [found[memory] for memory in memories if memory in found]
    return GivenFacts(kept, len(memories) - len(kept))

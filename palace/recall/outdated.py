"""Outdated hits: drawers with a fact that ended after they were said, and what holds instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q

from palace.models import Fact, Palace
from palace.recall.facts import STANDING, RecalledFact, citations_of, month_of


def _listed(choices: Iterable[str]) -> str:
    return ", ".join(f"'{choice}'" for choice in choices)


# Selects, ascending, the facts that rest on drawer `d` and ended after it was said; its parameters
# are the palace and those of a scope.
ENDED = f"""
SELECT DISTINCT f.id FROM palace_evidence e
JOIN palace_fact f ON f.palace_id = e.palace_id AND f.id = e.fact_id
LEFT JOIN palace_statement s ON s.palace_id = e.palace_id AND s.id = f.closed_by_id
LEFT JOIN palace_drawer later ON later.palace_id = e.palace_id AND later.id = s.drawer_id
WHERE e.palace_id = %(palace)s AND e.drawer_id = d.id
  AND (f.fate IN ({_listed(Fact.WAS_TRUE)})
       AND f.valid_to > d.said_at AND f.valid_to <= %(moment)s
    OR f.fate = '{Fact.Fate.CORRECTED}'
       AND later.said_at > d.said_at AND later.said_at <= %(moment)s)
  AND f.type IN ({_listed(STANDING)}) AND f.run IN ('', %(run)s::text)
  AND (%(agent)s::text = '' OR f.agent IN ('', %(agent)s::text))
ORDER BY 1
"""  # noqa: S608 - put together from constants.
# How many facts the note of one drawer names.
MOST_NAMED = 2


@dataclass(frozen=True, slots=True)
class Outdated:
    """What a drawer says that no longer holds.

    Attributes:
        since: When the last of it ended.
        facts: Of the first of these facts, how and when it ended, and its text: "no longer so since
            March 2025", "User lives in Porto".
    """

    since: datetime
    facts: tuple[tuple[str, str], ...]

    @property
    def note(self) -> str:
        """Such as "no longer so since March 2025: User lives in Porto"."""
        return "; ".join(f"{ended}: {text}" for ended, text in self.facts)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose facts count, and at which moment.

    Attributes:
        now: In the user's time zone.
        as_of: Ignore what ended, or was said, later.
        agent: Leave out the facts of other agents; empty: none.
    """

    now: datetime
    as_of: datetime | None = None
    agent: str = ""
    run: str = ""

    def parameters(self) -> dict[str, Any]:
        """Of `ENDED`."""
        return {"moment": self.as_of or self.now, "run": self.run, "agent": self.agent}

    def condition(self) -> Q:
        of_agent = Q(agent__in={"", self.agent}) if self.agent else Q()
        return of_agent & Q(type__in=STANDING, run__in={"", self.run})


def find_outdated(
    palace: Palace, ended_facts: Mapping[int, Sequence[int]], scope: Scope
) -> tuple[dict[int, Outdated], list[RecalledFact]]:
    """The outdated drawers by key, and the facts that took the place of theirs.

    A fact that was stated again since is not outdated. One that somebody corrected by hand is no
    sign of it either: the words may be true, and were read wrongly.

    Args:
        ended_facts: By drawer key, the keys of the facts that `ENDED` selects for it.
    """
    ended = _ended(palace, ended_facts)
    if not ended:
        return {}, []
    holding = _holding(palace, [fact for facts in ended.values() for fact in facts], scope)
    stated_again = {_meaning(fact) for fact in holding.values()}
    outdated = {
        drawer: _outdated(left, scope)
        for drawer, facts in ended.items()
        if (left := [fact for fact in facts if _meaning(fact) not in stated_again])
    }
    gone = {_meaning(fact) for facts in ended.values() for fact in facts}
    successors = {key: fact for key, fact in holding.items() if _meaning(fact) not in gone}
    return outdated, _recalled(palace, successors, scope) if outdated else []


def _ended(palace: Palace, keys: Mapping[int, Sequence[int]]) -> dict[int, list[Fact]]:
    """Ended facts by the drawer that they rest on."""
    wanted = {fact for facts in keys.values() for fact in facts}
    if not wanted:
        return {}
    facts = Fact.objects.within(palace).select_related("closed_by__drawer").in_bulk(wanted)
    found = {drawer: [facts[key] for key in own if key in facts] for drawer, own in keys.items()}
    return {drawer: own for drawer, own in found.items() if own}


def _holding(palace: Palace, ended: Sequence[Fact], scope: Scope) -> dict[int, Fact]:
    """The facts that hold in place of the ended ones, by key."""
    same = (
        Q(subject=fact.subject_id, predicate=fact.predicate, aspect=fact.aspect)
        & (Q(single=True) | Q(supersedes=fact.pk) | Q(object=fact.object))
        for fact in ended
    )
    facts = Fact.objects.within(palace).as_of(true_at=scope.as_of or scope.now)
    return facts.filter(scope.condition(), reduce(or_, same)).in_bulk()


def _meaning(fact: Fact) -> tuple[object, ...]:
    return fact.subject_id, fact.predicate, fact.aspect, fact.object.casefold()


def _outdated(facts: Sequence[Fact], scope: Scope) -> Outdated:
    ends = [_end_of(fact) for fact in facts]
    notes = tuple(
        (
            f"{'corrected in' if fact.fate == Fact.Fate.CORRECTED else 'no longer so since'} "
            f"{month_of(end, scope.now)}",
            fact.text,
        )
        for fact, end in zip(facts[:MOST_NAMED], ends, strict=False)
    )
    return Outdated(max(ends), notes)


def _end_of(fact: Fact) -> datetime:
    if fact.fate == Fact.Fate.CORRECTED and fact.closed_by is not None:
        return fact.closed_by.drawer.said_at
    return fact.valid_to or fact.recorded_at


def _recalled(palace: Palace, facts: Mapping[int, Fact], scope: Scope) -> list[RecalledFact]:
    cited = citations_of(palace, facts, scope.as_of)
    return [RecalledFact(facts[key], 0.0, *source, dates="") for key, source in cited.items()]

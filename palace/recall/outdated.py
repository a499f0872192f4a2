"""Outdated hits: drawers with a fact that ended after they were said, and what holds instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from isolation.raw_sql import fetch_rows
from palace.models import Fact, Palace
from palace.recall.entity_graph import TRUE_AT, listed
from palace.recall.facts import (
    IS_STANDING,
    MIN_CONFIDENCE,
    STANDING,
    RecalledFact,
    month_of,
    recalled_facts,
)

# Selects, ascending, the facts that rest on drawer `d` and ended after it was said; its parameters
# are the palace and those of a scope.
ENDED = f"""
SELECT DISTINCT f.id FROM palace_evidence e
JOIN palace_fact f ON f.palace_id = e.palace_id AND f.id = e.fact_id
LEFT JOIN palace_statement s ON s.palace_id = e.palace_id AND s.id = f.closed_by_id
LEFT JOIN palace_drawer later ON later.palace_id = e.palace_id AND later.id = s.drawer_id
WHERE e.palace_id = %(palace)s AND e.drawer_id = d.id
  AND (f.fate IN ({listed(Fact.WAS_TRUE)})
       AND f.valid_to > d.said_at AND f.valid_to <= %(moment)s
    OR f.fate = '{Fact.Fate.CORRECTED}'
       AND later.said_at > d.said_at AND later.said_at <= %(moment)s)
  AND f.type IN ({listed(STANDING)}) AND f.run IN ('', %(run)s::text)
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
        """Of statements about the facts that count."""
        return {"moment": self.as_of or self.now, "run": self.run, "agent": self.agent}


class _Ended(NamedTuple):
    """A fact that has ended, and when: one that was corrected, when the words were said."""

    key: int
    subject: int
    predicate: str
    aspect: str
    object: str
    text: str
    fate: str
    end: datetime


_ENDED_FACTS = f"""
SELECT f.id, f.subject_id, f.predicate, f.aspect, f.object, f.text, f.fate, coalesce(
    CASE WHEN f.fate = '{Fact.Fate.CORRECTED}' THEN d.said_at END, f.valid_to, f.recorded_at)
FROM palace_fact f
LEFT JOIN palace_statement s ON s.palace_id = %(palace)s AND s.id = f.closed_by_id
LEFT JOIN palace_drawer d ON d.palace_id = %(palace)s AND d.id = s.drawer_id
WHERE f.palace_id = %(palace)s AND f.id = ANY(%(facts)s::bigint[])
"""  # noqa: S608 - put together from constants.
# The facts that hold in place of the ended ones.
_HOLDING = f"""
SELECT f.id, f.subject_id, f.predicate, f.aspect, f.object FROM palace_fact f
WHERE f.palace_id = %(palace)s AND {TRUE_AT} AND {IS_STANDING} AND f.run IN ('', %(run)s::text)
  AND f.confidence >= {MIN_CONFIDENCE}
  AND (%(agent)s::text = '' OR f.agent IN ('', %(agent)s::text)) AND EXISTS (
    SELECT FROM palace_fact e WHERE e.palace_id = %(palace)s AND e.id = ANY(%(facts)s::bigint[])
      AND e.subject_id = f.subject_id AND e.predicate = f.predicate AND e.aspect = f.aspect
      AND (f.single OR f.supersedes_id = e.id OR f.object = e.object))
"""  # noqa: S608 - put together from constants.


def find_outdated(
    palace: Palace, ended_facts: Mapping[int, Sequence[int]], scope: Scope
) -> tuple[dict[int, Outdated], list[RecalledFact]]:
    """The outdated drawers by key, and the facts that took the place of theirs, with their dates.

    A fact that was stated again since is not outdated. One that somebody corrected by hand is no
    sign of it either: the words may be true, and were read wrongly.

    Args:
        ended_facts: By drawer key, the keys of the facts that `ENDED` selects for it.
    """
    ended = _ended(palace, ended_facts)
    if not ended:
        return {}, []
    facts = {fact.key for facts in ended.values() for fact in facts}
    given = {"palace": palace.pk, "facts": list(facts), **scope.parameters()}
    rows = fetch_rows(_HOLDING, given, prepared=True)
    holding = {key: _meaning(*stated) for key, *stated in rows}
    stated_again = set(holding.values())
    outdated = {
        drawer: _outdated(left, scope)
        for drawer, facts in ended.items()
        if (left := [fact for fact in facts if _meaning(*fact[1:5]) not in stated_again])
    }
    gone = {_meaning(*fact[1:5]) for facts in ended.values() for fact in facts}
    successors = [key for key, meaning in holding.items() if meaning not in gone]
    if not outdated:
        return {}, []
    return outdated, recalled_facts(palace, successors, scope.as_of, dated_at=scope.now)


def _ended(palace: Palace, keys: Mapping[int, Sequence[int]]) -> dict[int, list[_Ended]]:
    """Ended facts by the drawer that they rest on."""
    wanted = {fact for facts in keys.values() for fact in facts}
    if not wanted:
        return {}
    given = {"palace": palace.pk, "facts": list(wanted)}
    rows = fetch_rows(_ENDED_FACTS, given, prepared=True)
    facts = {fact.key: fact for fact in map(_Ended._make, rows)}
    found = {drawer: [facts[key] for key in own if key in facts] for drawer, own in keys.items()}
    return {drawer: own for drawer, own in found.items() if own}


def _meaning(subject: int, predicate: str, aspect: str, value: str) -> tuple[object, ...]:
    """What a fact states, however its object is written."""
    return subject, predicate, aspect, value.casefold()


def _outdated(facts: Sequence[_Ended], scope: Scope) -> Outdated:
    notes = tuple(
        (
            f"{'corrected in' if fact.fate == Fact.Fate.CORRECTED else 'no longer so since'} "
            f"{month_of(fact.end, scope.now)}",
            fact.text,
        )
        for fact in facts[:MOST_NAMED]
    )
    return Outdated(max(fact.end for fact in facts), notes)

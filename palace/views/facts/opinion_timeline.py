"""Opinions over time: a lane for each aspect, with its stances in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from palace.models import Fact

# In the drawing's units: pixels of a phone.
WIDTH = 344.0
LANE_HEIGHT = 58.0
# The width of a stance's sign, and how many fit on a lane.
NARROWEST = 22.0
MOST_STANCES = 12

SIGNS = {"positive": "+", "negative": "−", "mixed": "±", "neutral": "○"}


@dataclass(frozen=True, slots=True)
class Stance:
    """One opinion on its lane, which starts at `x`."""

    fact: Fact
    x: float
    width: float

    @property
    def sign(self) -> str:
        return SIGNS.get(self.fact.stance, "·")

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 1)

    @property
    def kind(self) -> str:
        return self.fact.stance if self.fact.stance in SIGNS else "unsaid"


@dataclass(frozen=True, slots=True)
class Lane:
    """
    Attributes:
        aspect: Empty for opinions on the subject as a whole.
        left_out: The number of earlier stances that did not fit.
    """

    aspect: str
    top: float
    stances: tuple[Stance, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class OpinionTimeline:
    """
    Attributes:
        since: When the drawing begins; None if no day is known.
    """

    lanes: tuple[Lane, ...]
    since: datetime | None
    width: float = WIDTH

    @property
    def height(self) -> float:
        return len(self.lanes) * LANE_HEIGHT


def timeline_of(facts: Sequence[Fact], now: datetime) -> OpinionTimeline:
    """The lanes of opinions on one matter.

    Args:
        facts: By aspect, and within one in order of time.
    """
    known = [fact.valid_from for fact in facts if fact.valid_from]
    since = min(known, default=None)
    start = min(since or now, now)
    lanes = []
    for number, (aspect, group) in enumerate(groupby(facts, key=lambda fact: fact.aspect)):
        opinions = list(group)
        stances = _stances(opinions[-MOST_STANCES:], start, now)
        top = number * LANE_HEIGHT
        lanes.append(Lane(aspect, top, stances, max(len(opinions) - MOST_STANCES, 0)))
    return OpinionTimeline(tuple(lanes), since)


def _stances(facts: Sequence[Fact], start: datetime, now: datetime) -> tuple[Stance, ...]:
    begins = _apart([_x(fact.valid_from or start, start, now) for fact in facts])
    stances = []
    for number, fact in enumerate(facts):
        limit = begins[number + 1] if number + 1 < len(facts) else WIDTH
        end = _x(fact.valid_to, start, now) if fact.valid_to else limit
        width = min(max(end - begins[number], NARROWEST), limit - begins[number])
        stances.append(Stance(fact, round(begins[number], 1), round(width - 2, 1)))
    return tuple(stances)


def _x(moment: datetime, start: datetime, now: datetime) -> float:
    span = (now - start).total_seconds() or 1.0
    share = (moment - start).total_seconds() / span
    return min(max(share, 0.0), 1.0) * WIDTH


def _apart(begins: Sequence[float]) -> list[float]:
    """Push each to the right until its sign fits, then back from the right end."""
    pushed: list[float] = []
    for x in begins:
        pushed.append(max(x, pushed[-1] + NARROWEST) if pushed else x)
    limit = WIDTH
    for number in range(len(pushed) - 1, -1, -1):
        limit -= NARROWEST
        pushed[number] = min(pushed[number], limit)
        limit = pushed[number]
    return pushed

"""The steps of a score: each signal's share begins where the one before it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from palace.queries.signals import SIGNALS, all_shares, label_of

# Shares and their sums are displayed in hundredths.
SHOWN = 100


@dataclass(frozen=True, slots=True)
class Step:
    """One signal's share, drawn from where the one before it ended.

    Attributes:
        hundredths: The share as displayed.
        start: The left edge of its bar, from 0 to 100; likewise `width`.
    """

    label: str
    hundredths: int
    start: float
    width: float

    @property
    def figure(self) -> str:
        return f"{self.hundredths / SHOWN:+.2f}".replace("-", "−")

    @property
    def plain_figure(self) -> str:
        """Without the sign of what is added."""
        return self.figure.removeprefix("+")

    @property
    def speaks_against(self) -> bool:
        return self.hundredths < 0


@dataclass(frozen=True, slots=True)
class ScoreAccount:
    """The steps to a score: the displayed figures add up to it.

    Attributes:
        zero: The position of zero, from 0 to 100.
        sum: The last step, from nothing to the score.
    """

    steps: tuple[Step, ...]
    zero: float
    sum: Step


class Scale:
    """The scale from the lowest to the highest partial sum of these scores."""

    def __init__(self, scored: Iterable[tuple[float, Mapping[str, float]]]) -> None:
        reached = {0}
        for score, signals in scored:
            reached.update(accumulate(share for _, share in _in_order(score, signals)))
        self._low = min(reached)
        self._width = (max(reached) - self._low) or 1

    def account(self, score: float, signals: Mapping[str, float]) -> ScoreAccount:
        shares = _in_order(score, signals)
        ends = [0, *accumulate(share for _, share in shares)]
        steps = (
            self._step(label_of(name), start, share)
            for (name, share), start in zip(shares, ends, strict=False)
        )
        return ScoreAccount(tuple(steps), self._at(0), self._step("Score", 0, ends[-1]))

    def _step(self, label: str, start: int, share: int) -> Step:
        left = self._at(min(start, start + share))
        return Step(label, share, left, round(abs(share) * 100 / self._width, 2))

    def _at(self, hundredths: int) -> float:
        return round((hundredths - self._low) * 100 / self._width, 2)


def explained(accounts: Iterable[ScoreAccount]) -> list[tuple[str, str]]:
    """Label and explanation of every signal that has a step somewhere."""
    drawn = {step.label for account in accounts for step in account.steps}
    return [words for words in SIGNALS.values() if words[0] in drawn]


def _in_order(score: float, signals: Mapping[str, float]) -> list[tuple[str, int]]:
    """The shares in hundredths, the largest first; their sum is the score."""
    known = all_shares(score, signals)
    shares = _rounded([(name, share * SHOWN) for name, share in known.items()], score * SHOWN)
    return sorted(((n, s) for n, s in shares if s), key=lambda each: -each[1])


def _rounded(shares: Sequence[tuple[str, float]], total: float) -> list[tuple[str, int]]:
    """Round to whole numbers that add up to the rounded total; the largest remainders round up."""
    whole = [(name, int(share // 1)) for name, share in shares]
    missing = round(total) - sum(share for _, share in whole)
    by_rest = sorted(range(len(shares)), key=lambda i: -(shares[i][1] % 1))
    up = set(by_rest[: max(missing, 0)])
    return [(name, share + (i in up)) for i, (name, share) in enumerate(whole)]

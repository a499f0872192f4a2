"""The hits of a search as rows: a snippet, and a bar for each signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from language.analyzer import analyze
from palace.queries.signals import SIGNALS, label_of
from palace.recall.recall import Hit
from palace.recall.rerank import describe_move
from palace.views.shared.snippets import snippet_of

# Smaller shares would be drawn as nothing and written as 0.00.
SMALLEST_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class Bar:
    """One signal's share, drawn on a scale of 0 to 100 that all hits of a recall have in common."""

    label: str
    share: float
    zero: float
    start: float
    width: float

    @property
    def figure(self) -> str:
        return f"{self.share:+.2f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class HitRow:
    hit: Hit
    place: int
    snippet: tuple[tuple[str, bool], ...]
    bars: tuple[Bar, ...]

    @property
    def url(self) -> str:
        start, end = self.hit.passage
        return f"{self.hit.drawer.get_absolute_url()}?passage={start}-{end}"

    @property
    def moved(self) -> str:
        """How a reranking model moved it, in a sentence; empty without one."""
        before = self.hit.place_before
        return "" if before is None else describe_move(before, self.place)


def hit_rows(hits: Sequence[Hit], query: str) -> list[HitRow]:
    """In the order of `hits`, each as the page shows it."""
    terms = set(analyze(query))
    shares = [0.0, *chain.from_iterable(hit.signals.values() for hit in hits)]
    low, high = min(shares), max(shares)
    return [
        HitRow(
            hit,
            place,
            snippet_of(hit.drawer.text, hit.passage, terms),
            _bars(hit.signals, low, high),
        )
        for place, hit in enumerate(hits, start=1)
    ]


def explained(hits: Sequence[Hit]) -> list[tuple[str, str]]:
    """Label and explanation of every signal that has a bar somewhere in `hits`."""
    drawn = {name for hit in hits for name, share in hit.signals.items() if _is_drawn(share)}
    return [words for name, words in SIGNALS.items() if name in drawn]


def _is_drawn(share: float) -> bool:
    return abs(share) >= SMALLEST_SHARE


def _bars(signals: Mapping[str, float], low: float, high: float) -> tuple[Bar, ...]:
    scale = 100 / ((high - low) or 1)
    return tuple(
        Bar(
            label=label_of(name),
            share=share,
            zero=round(-low * scale, 1),
            start=round((min(share, 0) - low) * scale, 1),
            width=round(abs(share) * scale, 1),
        )
        for name, share in signals.items()
        if _is_drawn(share)
    )

"""How a recall's hits are shown: a snippet with the question's words, and a bar a signal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from language.analyzer import analyze
from palace.recall.recall import Hit
from palace.recall.rerank import move_told

SNIPPET_LENGTH = 340
# How much of what comes before the first word of the question is shown with it.
LEAD_LENGTH = 60

# A signal's name for people, and what a long bar says.
SIGNALS = {
    "meaning": ("Meaning", "its sense is close to the question’s"),
    "words": ("Words", "it shares rare words with the question"),
    "exchange": ("Exchange", "the messages just before and after it fit too"),
    "agreement": ("Agreement", "what it changes that sense and words both point to it"),
    "room": ("Room", "its whole conversation is about this"),
    "speaker": ("Speaker", "the one who said it is the one asked about"),
    "time": ("Time", "it was said when the question points to"),
    "preference": ("Preference", "it states a lasting wish or taste"),
    "statement": ("Statement", "it says the kind of thing that such a question wants"),
    "length": ("Length", "it has enough words to say something"),
}
# Smaller shares would be drawn as nothing and written as 0.00.
SMALLEST_SHARE = 0.005

WORD = re.compile(r"\w+(?:['’]\w+)*")


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
        """What a model did with it, in a sentence; empty where none was asked."""
        before = self.hit.place_before
        return "" if before is None else move_told(before, self.place)


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
            label=SIGNALS[name][0] if name in SIGNALS else name.replace("_", " ").capitalize(),
            share=share,
            zero=round(-low * scale, 1),
            start=round((min(share, 0) - low) * scale, 1),
            width=round(abs(share) * scale, 1),
        )
        for name, share in signals.items()
        if _is_drawn(share)
    )


def snippet_of(
    text: str, passage: tuple[int, int], terms: set[str]
) -> tuple[tuple[str, bool], ...]:
    """Pieces of the passage's best stretch; True marks a word of the question."""
    matches = [m.span() for m in WORD.finditer(text, *passage) if terms & analyze(m[0]).keys()]
    start, end = _stretch(text, passage, matches)
    pieces: list[tuple[str, bool]] = [("… " if start > 0 else "", False)]
    at = start
    for first, last in matches:
        if first >= at and last <= end:
            pieces += [(text[at:first], False), (text[first:last], True)]
            at = last
    pieces += [(text[at:end], False), (" …" if end < len(text) else "", False)]
    return tuple(piece for piece in pieces if piece[0])


def _stretch(
    text: str, passage: tuple[int, int], matches: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """At most `SNIPPET_LENGTH` characters of the passage, where most of `matches` are."""
    start, end = passage
    if end - start > SNIPPET_LENGTH:
        begins = [max(start, first - LEAD_LENGTH) for first, _ in matches] or [start]
        start = max(
            begins,
            key=lambda b: sum(b <= first and last <= b + SNIPPET_LENGTH for first, last in matches),
        )
        end = min(end, start + SNIPPET_LENGTH)
    return _at_words(text, start, end)


def _at_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Moved inwards to white space, unless that is far away, as in text without spaces."""
    if start > 0 and not text[start - 1].isspace():
        gap = re.search(r"\s", text[start : min(start + 30, end)])
        start += gap.end() if gap else 0
    if end < len(text) and not text[end].isspace():
        cut = max(
            text.rfind(" ", max(start, end - 30), end), text.rfind("\n", max(start, end - 30), end)
        )
        end = cut if cut > start else end
    return start, end

"""The hits of a search as rows: each with its line, one reason and its signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from language.analyzer import all_readings
from language.detection import language_of
from language.english.questions import read_intent
from palace.recall import Hit, describe_move
from palace.recall.recipes import SIGNALS, label_of
from palace.views.shared.snippets import WORD, snippet_of, terms_of_word

# Smaller shares have no visible bar, and a figure of 0.00.
SMALLEST_SHARE = 0.005
# The length of a hit's line, and how much of a text is searched for the question's words.
LINE_LENGTH, SEARCHED_LENGTH = 170, 20_000
# The most words that a reason quotes.
WORDS_QUOTED = 3
# Reasons by the signal that counts most, where nothing plainer can be said.
REASONS = {
    "meaning": "Close in meaning",
    "agreement": "Close in meaning",
    "words": "Shares rare words with it",
    "exchange": "Stands beside a message that fits",
    "room": "Its whole conversation is about this",
    "preference": "States a lasting wish or taste",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One signal's share, drawn on a scale of 0 to 100 that all hits of a recall share."""

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
    """
    Attributes:
        place: From 1, as on the plan.
        reason: Why it was found, in a sentence.
    """

    hit: Hit
    place: int
    snippet: tuple[tuple[str, bool], ...]
    reason: str
    bars: tuple[Bar, ...]

    @property
    def url(self) -> str:
        start, end = self.hit.passage
        return f"{self.hit.drawer.get_absolute_url()}?passage={start}-{end}"

    @property
    def drawn_bars(self) -> SafeString:
        """The bars in one piece: a page has two hundred."""
        return mark_safe("".join(map(_drawn, self.bars)))  # noqa: S308 - labels are escaped.

    @property
    def score(self) -> str:
        return f"{self.hit.score:.2f}"

    @property
    def moved(self) -> str:
        """How a reranking model moved it, in a sentence; empty without one."""
        before = self.hit.place_before
        return "" if before is None else describe_move(before, self.place)


def hit_rows(hits: Sequence[Hit], query: str, *, is_like: bool = False) -> list[HitRow]:
    """The hits as rows, in their order."""
    terms = all_readings(query)
    names = () if is_like else read_intent(query).names
    shares = [0.0, *chain.from_iterable(hit.signals.values() for hit in hits)]
    low, high = min(shares), max(shares)
    by_time = sum(hit.signals.get("time", 0) >= SMALLEST_SHARE for hit in hits)
    is_time_telling = by_time < max(len(hits), 2)
    return [
        HitRow(
            hit,
            place,
            snippet_of(hit.drawer.text, _stretch(hit, terms), terms, LINE_LENGTH),
            reason_of(hit, set() if is_like else terms, names, is_time_telling=is_time_telling),
            _bars(hit.signals, low, high),
        )
        for place, hit in enumerate(hits, start=1)
    ]


def _stretch(hit: Hit, terms: set[str]) -> tuple[int, int]:
    """The passage, unless the question's words stand only elsewhere in the text."""
    text = hit.drawer.text
    start, end = hit.passage
    is_whole = (start, end) == (0, len(text))
    if is_whole or _words_in(text[start:end], terms) or not _words_in(text, terms):
        return hit.passage
    return 0, min(len(text), SEARCHED_LENGTH)


def reason_of(hit: Hit, terms: set[str], names: Sequence[str], *, is_time_telling: bool) -> str:
    """The plainest true reason for a hit, in one sentence.

    Args:
        terms: Of the question; none if it was another message.
        names: The names in the question.
        is_time_telling: Not all hits are from the time that is asked about, or there is only one.
    """
    text = hit.drawer.text
    if is_time_telling and hit.signals.get("time", 0) >= SMALLEST_SHARE:
        return "From the time you asked about"
    if named := [name for name in names if name.casefold() in text.casefold()]:
        return f"Names {named[0]}"
    words = _words_in(text, terms)
    if words and len(words) == len(terms):
        return "Says the words you typed"
    signal = max(REASONS, key=lambda name: hit.signals.get(name, 0.0))
    if hit.signals.get(signal, 0.0) < SMALLEST_SHARE:
        return "The nearest there is"
    if signal == "words" and words:
        quoted = " and ".join(f"“{word}”" for word in list(words.values())[:WORDS_QUOTED])
        return f"Says {quoted}"
    return REASONS[signal]


def _words_in(text: str, terms: set[str]) -> dict[str, str]:
    """Which of the terms the text has, each as it first spells it."""
    found: dict[str, str] = {}
    if terms:
        language = language_of(text)
        for match in WORD.finditer(text, 0, SEARCHED_LENGTH):
            for term in terms & terms_of_word(match[0], language):
                found.setdefault(term, match[0])
            if len(found) == len(terms):
                break
    return found


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


def _drawn(bar: Bar) -> str:
    against = " against" if bar.share < 0 else ""
    zero = f'<path d="M{bar.zero} -2V8"></path>' if bar.zero else ""
    return (
        f"<div><dt>{escape(bar.label)}</dt><dd>"
        f'<svg class="bar{against}" viewBox="0 0 100 6" preserveAspectRatio="none"'
        f' aria-hidden="true"><rect x="{bar.start}" width="{bar.width}" height="6"></rect>{zero}'
        f'</svg> <span class="figure">{bar.figure}</span></dd></div>'
    )

"""What a question says about when, relative to `now`, and how well a time of speaking suits it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from language.english.dates.phrases import read_phrases
from language.english.dates.spans import Span

_READ_AT_EITHER_END = 1_000  # Characters: long pasted texts are read at their start and end only.

_RECENT = re.compile(
    r"(?i)\b(?:latest|newest|most\s+recent(?:ly)?|recent(?:ly)?|lately|currently|nowadays|"
    r"current(?!\s+(?:events?|affairs)\b)|now|these\s+days|at\s+(?:the\s+moment|present)|"
    r"as\s+of\s+(?:now|today)|so\s+far|any\s?more|any\s+longer|still(?!\s+(?:life|image)\b)|"
    r"up[\s\-]to[\s\-]date|just\s+(?:now|recently))\b"
)
_FIRST = re.compile(
    r"(?i)\b(?:(?:very\s+)?first\s+(?:time|ever|conversation|chat|message|session)|originally|"
    r"initially|at\s+first|in\s+the\s+beginning|to\s+begin\s+with|"
    r"first\s+(?:started?|tell|told|mention(?:ed)?|talk(?:ed)?|discuss(?:ed)?|meet|met|"
    r"ask(?:ed)?|said|say|bring|brought|tr(?:y|ied)|learn(?:ed|t)?|beg[ai]n|became?))\b"
)
_LAST = re.compile(
    r"(?i)\b(?:the\s+)?last\s+(?:time|conversation|chat|session|message|we\s+(?:spoke|talked"
    r"|met))\b"
)


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` up to and without `end`, both aware, as `text` at these characters says."""

    start: datetime
    end: datetime
    text: str
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class TimeIntent:
    """What a text says about time.

    Attributes:
        periods: In the order of the text; one phrase gives two where it can be read in two ways.
        recent: It asks for what holds now or came latest: "currently", "most recently", "still".
        first: It asks for what came first: "originally", "the first time".
        last: It asks for the last time before this: "the last time", "our last conversation".
    """

    periods: tuple[Period, ...] = ()
    recent: bool = False
    first: bool = False
    last: bool = False

    def __bool__(self) -> bool:
        return bool(self.periods or self.recent or self.first or self.last)


def read_time(question: str, now: datetime) -> TimeIntent:
    """Read the phrases of time in `question` (or any text) as someone says them at `now`, aware.

    Weeks start on Monday; a month without a year is the latest that has begun; seasons are the
    northern hemisphere's. Quoted words are titles and are not read. Never raises for any text.
    """
    stretches = [(start, _legible(text)) for start, text in _ends(question)]

    def said(words: re.Pattern[str]) -> bool:
        return any(words.search(text) for _, text in stretches)

    return TimeIntent(
        tuple(
            _period(question, phrase.start_char + start, phrase.end_char + start, span, now)
            for start, text in stretches
            for phrase in read_phrases(text, now.replace(tzinfo=None))
            for span in phrase.spans
        ),
        recent=said(_RECENT),
        first=said(_FIRST),
        last=said(_LAST),
    )


def _period(question: str, start_char: int, end_char: int, span: Span, now: datetime) -> Period:
    start, end = (wall.replace(tzinfo=now.tzinfo) for wall in (span.start, span.end))
    return Period(start, end, question[start_char:end_char], start_char, end_char)


def _ends(question: str) -> list[tuple[int, str]]:
    """What is read of it, each stretch with where it begins: all, or both ends of a long text."""
    if len(question) <= 2 * _READ_AT_EITHER_END:
        return [(0, question)]
    tail = len(question) - _READ_AT_EITHER_END
    return [(0, question[:_READ_AT_EITHER_END]), (tail, question[tail:])]


_QUOTED = re.compile(
    r"\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|«[^»\n]{1,80}»|‘[^’\n]{1,80}’(?!\w)"
    r"|(?<!\w)'(?=[^\W\d])[^'\n]{1,80}(?:'\w[^'\n]{0,80})?'(?!\w)"
)


def _legible(text: str) -> str:
    """Of the same length, with quotations blotted out."""
    text = _QUOTED.sub(lambda quote: "·" * len(quote[0]), text)
    return text.replace("’", "'").replace("‘", "'")


_DAY_S = 86_400.0


def time_scores(
    said_at: NDArray[np.float64], intent: TimeIntent, now: datetime
) -> NDArray[np.float32]:
    """How well each time of speaking suits, 0 to 1; all 0 where nothing is said of time.

    Args:
        said_at: Seconds since the epoch, of any order and shape (n,); NaN where unknown scores 0.
    """
    if not said_at.size or not intent:
        return np.zeros(said_at.shape, np.float32)
    if intent.periods:
        scores = np.max([_closeness(said_at, period, now) for period in intent.periods], axis=0)
    else:
        scores = _freshness(said_at, now)
        if intent.first and not (intent.recent or intent.last):
            scores = _freshness(-said_at, None)
    known: NDArray[np.float64] = np.nan_to_num(scores, nan=0.0)
    return known.astype(np.float32)


def _closeness(said_at: NDArray[np.float64], period: Period, now: datetime) -> NDArray[np.float64]:
    """1 within the period; outside exp(-distance / tolerance), which grows with its width.

    About 3 days for a day, a week for a week, a fortnight for a month, six weeks for a year.
    People speak of things after them more than before, so later is forgiven twice as far.
    """
    start, end = period.start.timestamp(), period.end.timestamp()
    width_days = max((end - start) / _DAY_S, 0.25)
    if start > now.timestamp():
        # Talk about what lies ahead happens now: the nearer the question, the likelier.
        start = now.timestamp() - min(max(width_days, 7.0), 60.0) * _DAY_S
    tolerance = min(3.0 * width_days**0.45, 45.0) * _DAY_S
    early, late = np.maximum(start - said_at, 0.0), np.maximum(said_at - end, 0.0)
    return np.asarray(np.exp(-(early + late / 2.0) / tolerance))


def _freshness(said_at: NDArray[np.float64], now: datetime | None) -> NDArray[np.float64]:
    """1 for the newest, falling to 0.05 for the oldest, exponentially over the span they cover."""
    known = said_at[np.isfinite(said_at)]
    if not known.size:
        return np.zeros(said_at.shape)
    newest = float(known.max())
    if now is not None:
        newest = max(min(newest, now.timestamp()), float(known.min()))
    span = max(newest - float(known.min()), _DAY_S)
    return np.asarray(np.exp(-3.0 * np.clip((newest - said_at) / span, 0.0, 1.0)))

"""Align the messages of a request, which has the whole conversation, with the filed ones."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher

from api.openai.chat_request import History, Said

Words = tuple[str, str]

# The same opening message within this time is a retry, not a new conversation.
SAME_REQUEST = timedelta(minutes=10)
# Above these numbers of equal pairs or messages the optimal alignment is too slow (their product);
# a greedy one is used.
MOST_PAIRS = 200_000
MOST_MESSAGES = 4_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A filed message.

    Attributes:
        cut_off: Whether it is an interrupted reply, of which the program may have less.
    """

    key: int
    id: str
    said: Said
    position: int
    said_at: datetime
    cut_off: bool = False


def lay(history: History, kept: Sequence[Kept], now: datetime) -> list[Kept | None]:
    """For each message of the request, the filed one it matches, or None if it is new.

    Messages match by role, words and order. So a later repetition is new, and so is an edited
    message; and a program may omit any.
    """
    first = 0
    if history.opening and len(history.said) == 1:
        # Without any history, only the last input can match.
        first = _last_input(kept, now)
    return _laid(history.said, kept[first:])


def is_same_opening(history: History, kept: Sequence[Kept], now: datetime) -> bool:
    """Whether this repeats the request that opened the conversation."""
    kept_words = [each for each in kept if each.said.role != "assistant"]
    same = [each.said.words for each in kept_words] == [each.words for each in history.said]
    return same and bool(kept_words) and now - kept_words[-1].said_at < SAME_REQUEST


def _last_input(kept: Sequence[Kept], now: datetime) -> int:
    """Index of the last input, before its replies; the end if it is older than a retry."""
    place = len(kept)
    while place and kept[place - 1].said.role == "assistant":
        place -= 1
    if not place or now - kept[place - 1].said_at >= SAME_REQUEST:
        return len(kept)
    return place - 1


def _laid(said: Sequence[Said], kept: Sequence[Kept]) -> list[Kept | None]:
    words = [each.said.words for each in kept]
    kept_words = _as_kept(said, kept, set(words))
    laid: list[Kept | None] = [None] * len(said)
    for place, place_kept in _pairs(kept_words, words):
        laid[place] = kept[place_kept]
    return laid


def _pairs(kept_words: Sequence[Words], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Pairs of indices of equal messages, increasing in both lists."""
    counts = Counter(words)
    is_many = len(kept_words) + len(words) > MOST_MESSAGES
    if is_many or sum(counts[each] for each in kept_words) > MOST_PAIRS:
        yield from _next_of_each(kept_words, words)
        return
    matcher = SequenceMatcher(None, kept_words, words, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield block.a + step, block.b + step


def _next_of_each(kept_words: Sequence[Words], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Greedy: pair each message with the next equal one."""
    places: defaultdict[Words, list[int]] = defaultdict(list)
    for place, each in enumerate(words):
        places[each].append(place)
    least = 0
    for place, each in enumerate(kept_words):
        known = places.get(each, [])
        found = bisect_left(known, least)
        if found < len(known):
            yield place, known[found]
            least = known[found] + 1


def _as_kept(said: Sequence[Said], kept: Sequence[Kept], words: set[Words]) -> list[Words]:
    """Their words; for the beginning of an interrupted reply, the filed reply's words."""
    cut_off = sorted((each.said.text, each.said.words) for each in kept if each.cut_off)
    return [
        each.words
        if each.role != "assistant" or each.words in words
        else _continued(each.text.strip(), cut_off) or each.words
        for each in said
    ]


def _continued(beginning: str, cut_off: Sequence[tuple[str, Words]]) -> Words | None:
    """The filed reply that begins so: if there is one, it is the next alphabetically."""
    place = bisect_left(cut_off, (beginning, ("", "")))
    if place < len(cut_off) and cut_off[place][0].startswith(beginning):
        return cut_off[place][1]
    return None

"""A request carries the whole conversation: its messages laid beside those that are kept."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher

from api.openai.message_text import History, Said

Words = tuple[str, str]

# The same once more, and nothing before it: within this time it is the same request again.
SAME_REQUEST = timedelta(minutes=10)
# The best way to lay one list beside the other is looked for among so many pairs of messages that
# say the same, and so many messages: it takes time by their product.
MOST_PAIRS = 200_000
MOST_MESSAGES = 4_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A message as it was kept.

    Attributes:
        cut_off: Whether it is a reply that broke off: the program may have less of it than we.
    """

    key: int
    id: str
    said: Said
    position: int
    said_at: datetime
    cut_off: bool = False


def lay(history: History, kept: Sequence[Kept], now: datetime) -> list[Kept | None]:
    """For each message told, the one that was kept of it, or None where it is new.

    A message is known by its role and words, and by the order: so one that says the same later
    is new, and so is one that was edited; and it does not matter what a program left out.
    """
    first = 0
    if history.opening and len(history.said) == 1:
        # It tells nothing of what came before. Then only what was said last can be meant.
        first = _last_input(kept, now)
    return _laid(history.said, kept[first:])


def is_same_opening(history: History, kept: Sequence[Kept], now: datetime) -> bool:
    """Whether this is the request that began the conversation, sent once more."""
    told = [each for each in kept if each.said.role != "assistant"]
    same = [each.said.words for each in told] == [each.words for each in history.said]
    return same and bool(told) and now - told[-1].said_at < SAME_REQUEST


def _last_input(kept: Sequence[Kept], now: datetime) -> int:
    """Where what was said last is, its replies being after it; the end where that is long ago."""
    place = len(kept)
    while place and kept[place - 1].said.role == "assistant":
        place -= 1
    if not place or now - kept[place - 1].said_at >= SAME_REQUEST:
        return len(kept)
    return place - 1


def _laid(said: Sequence[Said], kept: Sequence[Kept]) -> list[Kept | None]:
    words = [each.said.words for each in kept]
    told = _as_kept(said, kept, set(words))
    laid: list[Kept | None] = [None] * len(said)
    for place, place_kept in _pairs(told, words):
        laid[place] = kept[place_kept]
    return laid


def _pairs(told: Sequence[Words], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Places in either that say the same, both in order."""
    counts = Counter(words)
    is_many = len(told) + len(words) > MOST_MESSAGES
    if is_many or sum(counts[each] for each in told) > MOST_PAIRS:
        yield from _next_of_each(told, words)
        return
    matcher = SequenceMatcher(None, told, words, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield block.a + step, block.b + step


def _next_of_each(told: Sequence[Words], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Each message told beside the next that says the same, with none passed over twice."""
    places: defaultdict[Words, list[int]] = defaultdict(list)
    for place, each in enumerate(words):
        places[each].append(place)
    least = 0
    for place, each in enumerate(told):
        known = places.get(each, [])
        found = bisect_left(known, least)
        if found < len(known):
            yield place, known[found]
            least = known[found] + 1


def _as_kept(said: Sequence[Said], kept: Sequence[Kept], words: set[Words]) -> list[Words]:
    """Their words; of a reply that broke off those that were kept, which it is the beginning of."""
    cut_off = sorted((each.said.text, each.said.words) for each in kept if each.cut_off)
    return [
        each.words
        if each.role != "assistant" or each.words in words
        else _continued(each.text.strip(), cut_off) or each.words
        for each in said
    ]


def _continued(beginning: str, cut_off: Sequence[tuple[str, Words]]) -> Words | None:
    """What goes on from there: if anything does, it is the next in the order of the alphabet."""
    place = bisect_left(cut_off, (beginning, ("", "")))
    if place < len(cut_off) and cut_off[place][0].startswith(beginning):
        return cut_off[place][1]
    return None

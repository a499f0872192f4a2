"""A request carries the whole conversation: its messages laid beside those that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher

from chat.proxy.said import History, Said

# The same once more, and nothing before it: within this time it is the same request again.
SAME_REQUEST = timedelta(minutes=10)


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
    told = [_as_kept(each, kept, set(words)) for each in said]
    laid: list[Kept | None] = [None] * len(said)
    matcher = SequenceMatcher(None, told, words, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            laid[block.a + step] = kept[block.b + step]
    return laid


def _as_kept(said: Said, kept: Sequence[Kept], words: set[tuple[str, str]]) -> tuple[str, str]:
    """Its words; of a reply that broke off those that were kept, which it is the beginning of."""
    if said.role == "assistant" and said.words not in words:
        for each in kept:
            if each.cut_off and each.said.text.startswith(said.text.strip()):
                return each.said.words
    return said.words

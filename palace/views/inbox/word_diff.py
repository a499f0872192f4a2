"""The differences between two texts, word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORD = re.compile(r"\S+\s*")
# What stays is looked for among so many pairs of equal words, and so many words: it takes time by
# their product. Of longer wordings only what they begin and end with stays.
MOST_PAIRS = 200_000
MOST_WORDS = 4_000


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive words that are all in both texts, or all in one of them."""

    text: str
    changed: bool


def changes(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """The old text with deletions marked, and the new one with insertions marked.

    The pieces of either, put together, are that wording to the byte.
    """
    before, after = _WORD.findall(old), _WORD.findall(new)
    gone: list[Piece] = [*_leading(old)]
    come: list[Piece] = [*_leading(new)]
    for same, start, end, new_start, new_end in _stretches(_stripped(before), _stripped(after)):
        gone += _pieces(before[start:end], changed=not same)
        come += _pieces(after[new_start:new_end], changed=not same)
    return gone, come


def likeness(one: str, other: str) -> float:
    """The similarity of two texts, 0 to 1; of long ones, regardless of word order."""
    words = _stripped(_WORD.findall(one)), _stripped(_WORD.findall(other))
    matcher = SequenceMatcher(None, *words, autojunk=False)
    return matcher.ratio() if _are_few(*words) else matcher.quick_ratio()


def _are_few(old: Sequence[str], new: Sequence[str]) -> bool:
    counts = Counter(new)
    few = len(old) + len(new) <= MOST_WORDS
    return few and sum(counts[word] for word in old) <= MOST_PAIRS


def _stretches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Whether it is the same, from where to where in the old words, and in the new ones."""
    if _are_few(old, new):
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        for kind, start, end, new_start, new_end in matcher.get_opcodes():
            yield kind == "equal", start, end, new_start, new_end
        return
    most = min(len(old), len(new))
    first = next((at for at in range(most) if old[at] != new[at]), most)
    most -= first
    last = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    yield True, 0, first, 0, first
    yield False, first, len(old) - last, first, len(new) - last
    yield True, len(old) - last, len(old), len(new) - last, len(new)


def all_changed(text: str) -> list[Piece]:
    return [Piece(text, changed=True)]


def _stripped(words: Iterable[str]) -> list[str]:
    return [word.rstrip() for word in words]


def _leading(text: str) -> Iterator[Piece]:
    space = text[: len(text) - len(text.lstrip())]
    if space:
        yield Piece(space, changed=False)


def _pieces(words: Sequence[str], *, changed: bool) -> Iterator[Piece]:
    """Space after the last word is not part of a change."""
    text = "".join(words)
    kept = text.rstrip()
    if kept:
        yield Piece(kept, changed)
    if kept != text:
        yield Piece(text[len(kept) :], changed=False)

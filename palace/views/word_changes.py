"""What differs between two wordings, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORD = re.compile(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class Piece:
    """Words in a row that are all in both wordings, or all in one of them."""

    text: str
    changed: bool


def changes(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """The old wording with what goes, and the new one with what comes, marked.

    The pieces of either, put together, are that wording to the byte.
    """
    before, after = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, _stripped(before), _stripped(after), autojunk=False)
    gone: list[Piece] = [*_leading(old)]
    come: list[Piece] = [*_leading(new)]
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        gone += _pieces(before[start:end], changed=kind != "equal")
        come += _pieces(after[new_start:new_end], changed=kind != "equal")
    return gone, come


def likeness(one: str, other: str) -> float:
    """How much of two wordings is the same, 0 to 1."""
    words = _stripped(_WORD.findall(one)), _stripped(_WORD.findall(other))
    return SequenceMatcher(None, *words, autojunk=False).ratio()


def all_changed(text: str) -> list[Piece]:
    return [Piece(text, changed=True)]


def _stripped(words: Iterable[str]) -> list[str]:
    return [word.rstrip() for word in words]


def _leading(text: str) -> Iterator[Piece]:
    space = text[: len(text) - len(text.lstrip())]
    if space:
        yield Piece(space, changed=False)


def _pieces(words: Sequence[str], *, changed: bool) -> Iterator[Piece]:
    """The room after the last word is no part of a change."""
    text = "".join(words)
    kept = text.rstrip()
    if kept:
        yield Piece(kept, changed)
    if kept != text:
        yield Piece(text[len(kept) :], changed=False)

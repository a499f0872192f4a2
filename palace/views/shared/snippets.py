"""Snippets: the stretch of a passage that has most of the question's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from language.analyzer import analyze
from language.detection import language_of

SNIPPET_LENGTH = 340
# Characters shown before the question's first word.
LEAD_LENGTH = 60

WORD = re.compile(r"\w+(?:['’]\w+)*")


@lru_cache(maxsize=10_000)
def terms_of_word(word: str, language: str) -> frozenset[str]:
    """Cached, as the messages of a page share most of their words."""
    return frozenset(analyze(word, language))


def snippet_of(
    text: str, passage: tuple[int, int], terms: set[str], length: int = SNIPPET_LENGTH
) -> tuple[tuple[str, bool], ...]:
    """The best stretch of the passage, in pieces; True marks a word of the question."""
    language = language_of(text)
    matches = [
        match.span()
        for match in WORD.finditer(text, *passage)
        if not terms.isdisjoint(terms_of_word(match[0], language))
    ]
    start, end = _stretch(text, passage, matches, length)
    # The dots stay on the line of the word beside them.
    pieces: list[tuple[str, bool]] = [("…\u00a0" if start > 0 else "", False)]
    at = start
    for first, last in matches:
        if first >= at and last <= end:
            pieces += [(text[at:first], False), (text[first:last], True)]
            at = last
    pieces += [(text[at:end], False), ("\u00a0…" if end < len(text) else "", False)]
    return tuple(piece for piece in pieces if piece[0])


def _stretch(
    text: str, passage: tuple[int, int], matches: Sequence[tuple[int, int]], length: int
) -> tuple[int, int]:
    """At most `length` characters of the passage, where most of `matches` are."""
    start, end = passage
    if end - start > length:
        begins = [max(start, first - LEAD_LENGTH) for first, _ in matches] or [start]
        start = max(
            begins,
            key=lambda b: sum(b <= first and last <= b + length for first, last in matches),
        )
        end = min(end, start + length)
    return _at_words(text, start, end)


def _at_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Move both ends inwards to white space, unless that is far away."""
    if start > 0 and not text[start - 1].isspace():
        gap = re.search(r"\s", text[start : min(start + 30, end)])
        start += gap.end() if gap else 0
    if end < len(text) and not text[end].isspace():
        cut = max(
            text.rfind(" ", max(start, end - 30), end), text.rfind("\n", max(start, end - 30), end)
        )
        end = cut if cut > start else end
    return start, end

"""English: dates, intent, names, titles, facts, judging. Another language is a folder beside it.

Here are its word lists, kept as data beside the code: words/<name>.txt, lower case. A line holds
single words between spaces, or, where it has a bar, names of several words.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import Stemmer

_FOLDER = Path(__file__).with_name("words")


def text_of(name: str) -> str:
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@cache
def words(name: str) -> frozenset[str]:
    found: set[str] = set()
    for line in text_of(name).splitlines():
        found.update(line.split("|") if "|" in line else line.split())
    return frozenset(found)


def one_of(name: str) -> str:
    """A pattern of any of its words, the longer of two with the same beginning first."""
    return "|".join(map(re.escape, sorted(words(name), reverse=True)))


@cache
def _alternatives() -> list[list[str]]:
    return [line.split() for line in text_of("alternatives").splitlines()]


_HEAD = re.compile(
    r"(?P<head>[^\W\d_]\w*)(?: (?:\d\w*|pro|max|mini|air|plus|ultra|se|xl))*"
    r"(?:,|\Z| (?:for|with|from|in|on|at|that|which|to|called|named|of)\b)"
)


def kinds_of(text: str) -> set[int]:
    """The kinds, lines of alternatives, of what the text names: a "Windows laptop" is a laptop."""
    found = _HEAD.search(text.lower())
    head = found["head"] if found else ""
    return {at for at, names in enumerate(_alternatives()) if head in names}


@cache
def _stemmer() -> Stemmer.Stemmer:
    # The reader of imported files uses word lists, and has no installed packages.
    import Stemmer  # noqa: PLC0415

    return Stemmer.Stemmer("english")


@cache
def stems(name: str) -> frozenset[str]:
    return frozenset(_stemmer().stemWords(sorted(words(name))))


def stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


def stem_all(some: list[str]) -> list[str]:
    return list(_stemmer().stemWords(some))

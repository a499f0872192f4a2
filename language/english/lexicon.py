"""Word lists, kept as data beside the code: words/<name>.txt, lower case.

A line holds single words between spaces, or, where it has a bar, names of several words.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import Stemmer

_FOLDER = Path(__file__).with_name("words")
_STEMMER = Stemmer.Stemmer("english")


def text_of(name: str) -> str:
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@cache
def words(name: str) -> frozenset[str]:
    found: set[str] = set()
    for line in text_of(name).splitlines():
        found.update(line.split("|") if "|" in line else line.split())
    return frozenset(found)


@cache
def stems(name: str) -> frozenset[str]:
    return frozenset(_STEMMER.stemWords(sorted(words(name))))


def stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))


def stem_all(some: list[str]) -> list[str]:
    return list(_STEMMER.stemWords(some))

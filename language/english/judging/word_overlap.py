"""Word overlap of two statements."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache

_EMPTY = frozenset(
    "a an the of in at on to for and or with my their his her our is are be was named"
    " called new very really some any it"
    " every each as by from into user s own also now still just".split()
)
_SIMILAR_NAMES = 0.7
_NOT = re.compile(r"\b(?:not|no longer|never|cannot|nobody)\b", re.IGNORECASE)


@lru_cache(maxsize=20_000)
def words_of(text: str) -> frozenset[str]:
    """The stems of a text without function words: "the cats" and "a cat" give the same set."""
    found = re.findall(r"[^\W_]+(?:[.,]\d+)?", text.lower().replace("'s", "").replace("’s", ""))
    return frozenset(_stem(word) for word in found if word not in _EMPTY)


_ALIKE = dict.fromkeys(("wedding", "weddings", "marry", "marries", "marriage"), "marri")


def _stem(word: str) -> str:
    """A rough stem: plurals and gerunds match their base form."""
    if word in _ALIKE:
        return _ALIKE[word]
    if len(word) < 4 or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            doubled = ending != "s" and word[-1] == word[-2] and word[-1] not in "lse"
            return word[:-1] if doubled else word.rstrip("e")
    return word.rstrip("e")


def same(one: str, other: str) -> bool:
    """Whether both have the same words in any order; of texts without words, the same signs."""
    first, second = words_of(one), words_of(other)
    if not first or not second:
        return one.strip().lower() == other.strip().lower()
    return first == second


def says_more(more: str, less: str) -> bool:
    """Whether one text has all words of the other, and more."""
    fewer = words_of(less)
    return bool(fewer) and fewer < words_of(more)


def overlap(one: str, other: str) -> float:
    """The share of the shorter text's words that the other has, 0 to 1."""
    first, second = words_of(one), words_of(other)
    if not first or not second:
        return 0.0
    return len(first & second) / min(len(first), len(second))


_COUNTS = words_of(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty once twice"
)


def without_figures(text: str) -> frozenset[str]:
    """The words without amounts: "sertraline" of "50 mg of sertraline"."""
    units = {
        "mg",
        "mcg",
        "g",
        "ml",
        "kg",
        "km",
        "euro",
        "pound",
        "dollar",
        "hour",
        "time",
        "week",
        "day",
        "month",
    }
    return frozenset(
        word
        for word in words_of(text)
        if not word[0].isdigit() and word not in units and word not in _COUNTS
    )


def spelt_alike(one: str, other: str) -> bool:
    return SequenceMatcher(None, one.lower(), other.lower()).ratio() >= _SIMILAR_NAMES


def denies(text: str) -> bool:
    """Whether a statement says that something is not so."""
    return _NOT.search(text) is not None

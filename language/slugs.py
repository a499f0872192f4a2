"""Slugs: names as they are matched."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

MAX_SLUG_LENGTH = 200
_SIGN = re.compile(r"[^\w\s-]")
# Vowel signs of Indic scripts and of Thai, Lao and Tibetan tell words apart: marks of these
# combining classes. Points of Hebrew and Arabic, and loose accents, do not.
_VOWELS = frozenset({0, 9, 103, 107, 118, 122, 129, 130, 132})
_MARKS = frozenset({"Mn", "Mc"})
_VARIANTS = re.compile(r"[\ufe00-\ufe0f]")
_JOINED = re.compile(r"[-\s]+")
# Signs that tell names apart, by where they stand. Elsewhere they are punctuation: "#general",
# "Luna & Max", "Dr. Smith", "J.R. Smith", "O'Brien".
_TELLING = re.compile(
    r"""
    (?<=\w)[&/\\@$€£¥%=*^~|!?<>](?=\w)          # Within a word: AT&T, TCP/IP and TCPIP, P!nk.
    | (?<=\d)(?:[.:/⁄]|,(?!\d{3}(?!\d)))(?=\d)  # In a number: 3.12 and 3.1.2; 10,000 is 10000.
    | (?<=[\w+#*%])[+#*%]                       # Behind a word: C++, C#, A*, 50%.
    | (?<=\w)--(?!\S) | (?<=\b\w)-(?!\S)        # At a word's end: C--, A-.
    | (?<![\w.])\.(?=[^\W\d_])                  # Before a word: .NET and the net.
    """,
    re.VERBOSE,
)
_SPELT = {
    "+": "plus",
    "#": "sharp",
    "&": "and",
    ".": "dot",
    "/": "slash",
    "⁄": "slash",
    "*": "star",
    "-": "minus",
    "%": "percent",
    "@": "at",
}
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*]*)\1(?![\w*])")


@lru_cache(maxsize=10_000)
def slug_of(name: str) -> str:
    """The name as it is matched; one made of signs alone gets a slug of its own.

    Signs that belong to a name are spelt: C++, Python 3.12, TCP/IP, A*. A hyphen is a space, and a
    sign that may end a sentence is none of the name's: "Go!" is Go.
    """
    normal = unicodedata.normalize("NFKC", name).lower()
    spelt = _TELLING.sub(_spelt, without_emphasis(normal))
    slug = _JOINED.sub("-", _SIGN.sub(_vowel, spelt)).strip("-_")[:MAX_SLUG_LENGTH]
    return slug or hashlib.sha256(name.encode()).hexdigest()[:12]


def without_emphasis(text: str) -> str:
    """The text without the asterisks of Markdown's *Luna* and **Luna**."""
    return _EMPHASIS.sub(r"\2", text)


def _vowel(sign: re.Match[str]) -> str:
    """The sign if it is a vowel, else nothing."""
    mark = sign.group()
    is_vowel = unicodedata.category(mark) in _MARKS and unicodedata.combining(mark) in _VOWELS
    return mark if is_vowel and not _VARIANTS.match(mark) else ""


def _spelt(signs: re.Match[str]) -> str:
    words = (_SPELT.get(sign) or unicodedata.name(sign).lower() for sign in signs.group())
    return "".join(f"-{word}-" for word in words)

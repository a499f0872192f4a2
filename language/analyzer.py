"""Text to terms: what BM25 counts, for drawers and questions alike."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter

import Stemmer

# A change here changes what is stored: raise it, and `manage.py reindex` rebuilds the postings.
VERSION = 1

MAX_TERM_LENGTH = 64

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Scripts written without spaces are read as overlapping pairs of characters.
UNSPACED = re.compile("[぀-ヿ㐀-鿿豈-﫿가-힣฀-๿]+")
_POSSESSIVE = re.compile(r"['’]s?$")
_STEMMERS = threading.local()  # A stemmer keeps state: one for each thread.

STOPWORDS = frozenset(
    """
    a about above after again against all am an and any are aren't as at be because been before
    being below between both but by can can't cannot could couldn't d did didn't do does doesn't
    doing don't down during each few for from further had hadn't has hasn't have haven't having he
    he'd he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm i've if
    in into is isn't it it's its itself just let's ll m me more most mustn't my myself no nor not
    now of off on once only or other ought our ours ourselves out over own re s same shan't she
    she'd she'll she's should shouldn't so some such t than that that's the their theirs them
    themselves then there there's these they they'd they'll they're they've this those through to
    too under until up ve very was wasn't we we'd we'll we're we've were weren't what what's when
    when's where where's which while who who's whom why why's will with won't would wouldn't you
    you'd you'll you're you've your yours yourself yourselves
    """.split()
)


def analyze(text: str) -> Counter[str]:
    """Terms of `text` with their counts: stemmed, lower case, stopwords left out."""
    words = [word for word in _words(text) if word not in STOPWORDS]
    return Counter(stem[:MAX_TERM_LENGTH] for stem in _stemmer().stemWords(words))


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    found: list[str] = _WORD.findall(folded)
    if UNSPACED.search(folded):
        return [part for word in found for part in _parts(word)]
    return [_plain(word) for word in found] if "'" in folded else found


def _plain(word: str) -> str:
    return word if word in STOPWORDS else _POSSESSIVE.sub("", word)


def _parts(word: str) -> list[str]:
    return _pairs(word) if UNSPACED.search(word) else [_plain(word)]


def _pairs(word: str) -> list[str]:
    return [word[i : i + 2] for i in range(len(word) - 1)] or [word]


def _stemmer() -> Stemmer.Stemmer:
    if not hasattr(_STEMMERS, "english"):
        _STEMMERS.english = Stemmer.Stemmer("english")
    stemmer: Stemmer.Stemmer = _STEMMERS.english
    return stemmer

"""Which language a text is written in, and its terms: what BM25 counts, for drawers and questions
alike.

The script decides where only one language of ours uses it. Among languages of one script py3langid
decides (Lui, Baldwin: langid.py, 2012), except for plainly English text, which needs no model.

A word is stemmed by the Snowball stemmer of the text's language. Scripts that are written without
spaces are read as overlapping pairs of characters.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from copy import copy
from functools import cache, lru_cache
from pathlib import Path

import Stemmer
from py3langid.langid import MODEL_FILE, LanguageIdentifier

ENGLISH = "en"
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

_FUNCTION_WORDS = Path(__file__).parent / "function_words"
# Scripts that one language of ours uses.
_SCRIPTS = {
    "ja": re.compile("[぀-ヿ]"),
    "ko": re.compile("[가-힣ᄀ-ᇿ]"),
    "zh": re.compile("[㐀-鿿豈-﫿]"),
    "th": re.compile("[฀-๿]"),
    "el": re.compile("[Ͱ-Ͽ]"),
    "hy": re.compile("[԰-֏]"),
    "he": re.compile("[֐-׿]"),
    "ta": re.compile("[஀-௿]"),
}
# Scripts that several share; the first language is that of a text too short to tell.
_SHARED = (
    (re.compile("[Ѐ-ӿ]"), ("ru", "uk", "bg", "sr", "be", "mk")),
    (re.compile("[؀-ۿ]"), ("ar", "fa", "ur")),
    (re.compile("[ऀ-ॿ]"), ("hi", "ne", "mr")),
)
_LATIN = (
    *(ENGLISH, "ca", "cs", "da", "de", "es", "et", "eu", "fi", "fr", "ga", "hr", "hu", "id", "it"),
    *("lt", "nl", "no", "pl", "pt", "ro", "sk", "sl", "sv", "tr", "vi"),
)
_LETTERS = re.compile(r"[^\W\d_]")
# A share of function words that only English has. Other languages lend and borrow a few.
_PLAINLY_ENGLISH = 0.2
# Fewer words, in plain letters, show no language.
_FEWEST_WORDS = 3
# Below this probability a text is too short to tell: it is read as the default of its script.
_LEAST = 0.5
# The beginning shows the language of a long text.
_READ_CHARS = 1000
# English function words that are words of another language too.
_LENT = frozenset(
    "a all am an as at but by d de der do had has he her him i in is it m me more no on once or "
    "over own re s so t to under up was we will".split()
)


@cache
def function_words(language: str) -> frozenset[str]:
    """Words that say little on their own, question words among them; lower case."""
    path = _FUNCTION_WORDS / f"{language}.txt"
    return frozenset(path.read_text(encoding="utf-8").split()) if path.exists() else frozenset()


def load_detection() -> None:
    """Load the language model now, so that the first text that needs it does not wait."""
    _model()


def language_of(text: str) -> str:
    """The ISO 639-1 code of the language that most of `text` is written in; English if unknown."""
    return languages_of(text)[0]


def languages_of(text: str) -> tuple[str, ...]:
    """The language of `text`; of one too short to tell, the default and then the likeliest."""
    return _languages_of(text[:_READ_CHARS])


# A recall asks several times what its question is written in.
@lru_cache(maxsize=64)
def _languages_of(start: str) -> tuple[str, ...]:
    if start.isascii():
        return _among(_LATIN, start)
    letters = len(_LETTERS.findall(start)) or 1
    for language, script in _SCRIPTS.items():
        # Japanese writes most of its nouns in Chinese characters.
        if len(script.findall(start)) >= (0.1 if language == "ja" else 0.3) * letters:
            return (language,)
    for script, languages in _SHARED:
        if len(script.findall(start)) >= 0.5 * letters:
            return _among(languages, start)
    return _among(_LATIN, start)


def _among(languages: tuple[str, ...], text: str) -> tuple[str, ...]:
    if languages is _LATIN and _is_plainly_english(text):
        return (ENGLISH,)
    language, probability = _identifier(languages).classify(text)
    return (language,) if probability >= _LEAST else (languages[0], language)


def _is_plainly_english(text: str) -> bool:
    words = WORD.findall(text.lower().replace("’", "'"))
    if not words or (len(words) < _FEWEST_WORDS and text.isascii()):
        return True
    english = [word for word in words if word in function_words(ENGLISH)]
    return len(english) >= _PLAINLY_ENGLISH * len(words) and not _LENT.issuperset(english)


@cache
def _identifier(languages: tuple[str, ...]) -> LanguageIdentifier:
    identifier = copy(_model())  # Its tables, some 75 MB, are shared.
    identifier.set_languages(list(languages))
    return identifier


@cache
def _model() -> LanguageIdentifier:
    """The language model; it takes most of a second to load, so not for plainly English texts."""
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


# A change here changes what is stored: raise it, and a periodic task rebuilds older postings.
VERSION = 2

MAX_TERM_LENGTH = 64
STEMMERS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    ENGLISH: "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}

UNSPACED = re.compile("[぀-ヿ㐀-鿿豈-﫿가-힣฀-๿]+")
_POSSESSIVE = re.compile(r"['’]s?$")
# "l'acqua", "d'hiver": an article or a preposition, and its noun.
_ELIDED = re.compile(r"^(?:[cdjlmnst]|qu|[dn]?ell|all|dall|sull|un)'(?=\w)")
_ELIDING = frozenset(("ca", "fr", "it"))
# They write compounds as one word. A question's is looked up by its parts as well.
_COMPOUNDING = frozenset(("da", "de", "fi", "nl", "no", "sv"))
_SHORTEST_PART, _LONGEST_COMPOUND = 4, 32
_local = threading.local()  # A stemmer keeps state: one of each language for each thread.


def analyze(text: str, language: str | None = None) -> Counter[str]:
    """Terms of a message with their counts: stemmed, lower case, function words left out.

    Another language's words are counted as English reads them too, so that a question in English
    finds the names and loanwords among them.

    Args:
        language: ISO 639-1; found from the text by default.
    """
    language = language or language_of(text)
    words = _words(text, language)
    terms = Counter(_stems(words, language))
    if language != ENGLISH:
        for term, count in Counter(_stems(words, ENGLISH)).items():
            terms.setdefault(term, count)
    return terms


def has_terms(text: str, language: str) -> bool:
    """Whether `analyze` finds any term, in a fraction of its time."""
    return bool(_words(text, language))


def analyze_question(text: str) -> dict[str, tuple[str, ...]]:
    """The distinct terms of a question, each with the other terms its word may be stored as.

    A message may be in English, or be read as English because it is too short to tell; a question
    may be too short as well.
    """
    language, *others = languages_of(text)
    words = list(dict.fromkeys(_words(text, language)))
    stems = [_stems(words, each) for each in (language, *others, ENGLISH)]
    readings: dict[str, tuple[str, ...]] = {}
    for word, own, *rest in zip(words, *stems, strict=True):
        parts = _stems(_parts_of(word), language) if language in _COMPOUNDING else ()
        others_of = dict.fromkeys(term for term in (*rest, *parts) if term != own)
        readings.setdefault(own, tuple(others_of))
    return readings


def all_readings(question: str) -> set[str]:
    """Every term that a word of the question may be stored as."""
    return {term for pair in analyze_question(question).items() for term in (pair[0], *pair[1])}


def _words(text: str, language: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    found: list[str] = WORD.findall(folded)
    if UNSPACED.search(folded):
        found = [part for word in found for part in _parts(word, language)]
    elif "'" in folded:
        found = [_plain(word, language) for word in found]
    empty = function_words(language)
    return [word for word in found if word not in empty]


def _plain(word: str, language: str) -> str:
    if word in function_words(language):
        return word
    return _POSSESSIVE.sub("", _ELIDED.sub("", word) if language in _ELIDING else word)


def _parts(word: str, language: str) -> list[str]:
    return _pairs(word) if UNSPACED.search(word) else [_plain(word, language)]


def _parts_of(compound: str) -> list[str]:
    """Beginnings and ends of a long word: "mohn" and "kuchen", and others that are no words."""
    if len(compound) > _LONGEST_COMPOUND:
        return []
    places = range(_SHORTEST_PART, len(compound) - _SHORTEST_PART + 1)
    return [part for place in places for part in (compound[:place], compound[place:])]


def _pairs(word: str) -> list[str]:
    return [word[i : i + 2] for i in range(len(word) - 1)] or [word]


def _stems(words: list[str], language: str) -> list[str]:
    if language not in STEMMERS:
        return [word[:MAX_TERM_LENGTH] for word in words]
    return [stem[:MAX_TERM_LENGTH] for stem in _stemmer(language).stemWords(words)]


def _stemmer(language: str) -> Stemmer.Stemmer:
    stemmers: dict[str, Stemmer.Stemmer] = _local.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(STEMMERS[language])
    return stemmers[language]

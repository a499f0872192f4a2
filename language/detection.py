"""Which language a text is written in.

The script decides where only one language of ours uses it. Among languages of one script py3langid
decides (Lui, Baldwin: langid.py, 2012), except for plainly English text, which needs no model.
"""

from __future__ import annotations

import re
from copy import copy
from functools import cache, lru_cache
from pathlib import Path

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

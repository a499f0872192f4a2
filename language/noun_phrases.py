"""Noun phrases of languages other than English that have articles, and of Japanese.

They are found by their surroundings, without word lists: what follows an article, up to the next
function word; in German up to the noun, which has a capital; in Japanese a run of Chinese
characters and katakana.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from language.detection import function_words

_ARTICLES = {
    "de": "der die das dem den des ein eine einen einem einer mein meine meinen meinem meiner unser"
    " unsere unseren unserem im am vom zum zur beim",
    "es": "el la los las un una unos unas mi mis tu su nuestro nuestra del al",
    "fr": "le la les un une mon ma mes ton ta notre nos du au",
    "it": "il lo la i gli le un uno una mio mia miei del della dello dei nel nella al alla",
    "pt": "o a os as um uma meu minha meus minhas do da no na ao",
    "nl": "de het een mijn ons onze",
}
_OF = {
    "es": "de del",
    "fr": "de du des d'",
    "it": "di del della dei delle da",
    "pt": "de do da dos das",
    "nl": "van",
}
_TOKEN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*['’]?|[^\w\s]")
_JAPANESE = re.compile(r"[一-鿿々ァ-ヺー]{2,12}(?:の[一-鿿々ァ-ヺー]{2,8})?")
_MOST_WORDS = 4
_LEAST_LETTERS = 4
READ_CHARS = 1000


def noun_phrases(text: str, language: str) -> Iterator[str]:
    """In the order of the text; none of a language that is not known here."""
    read = text[:READ_CHARS]
    if language == "ja":
        yield from _JAPANESE.findall(read)
    elif language in _ARTICLES:
        yield from _after_articles(read, language)


def _after_articles(text: str, language: str) -> Iterator[str]:
    tokens = list(_TOKEN.finditer(text))
    articles = frozenset(_ARTICLES[language].split())
    for at, token in enumerate(tokens):
        elided = language in ("fr", "it") and token.group().lower() in ("l'", "l’")
        if token.group().lower() in articles or elided:
            last = _end_of(tokens, at + 1, language)
            if last > at:
                phrase = text[tokens[at + 1].start() : tokens[last].end()]
                if len(phrase) >= _LEAST_LETTERS:
                    yield " ".join(phrase.split())


def _end_of(tokens: list[re.Match[str]], first: int, language: str) -> int:
    """Index of the phrase's last token; before `first` where there is none."""
    words = [token.group() for token in tokens[first : first + _MOST_WORDS]]
    return first - 1 + (_german(words) if language == "de" else _with_of(words, language))


def _german(words: list[str]) -> int:
    """How many words the phrase has: adjectives, and the nouns that follow one another."""
    for count, word in enumerate(words, start=1):
        if word[:1].isupper():
            return count
        if not word.isalpha() or word.lower() in function_words("de"):
            break
    return 0


def _with_of(words: list[str], language: str) -> int:
    """A noun, and what it is of, without another article between: "recibo de luz"."""
    small = function_words(language)
    if not words or not words[0].isalpha() or words[0].lower() in small:
        return 0
    of = frozenset(_OF[language].split())
    articles = frozenset(_ARTICLES[language].split())
    if len(words) > 1 and words[1].lower().replace("’", "'") in of:
        at = 3 if len(words) > 3 and words[2].lower() in articles else 2
        if len(words) > at and words[at].isalpha() and words[at].lower() not in small:
            return at + 1
    return 1

"""The number of a text's tokens: estimated without calling a model, or as a provider reports it."""

from __future__ import annotations

import re
import string
from functools import cache
from itertools import compress, repeat
from operator import is_
from pathlib import Path

from django.conf import settings
from tokenizers import Tokenizer

from llm.embedding import model_build
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME

# Chat models tokenize English prose into up to a fifth more tokens than WordPiece. Budgets must not
# overflow, so we add a quarter.
SAFETY_FACTOR = 1.25
# WordPiece maps a string it cannot split (a long number, base64, an unknown script) to one [UNK].
# Byte-level tokenizers make about one token of two bytes.
BYTES_PER_UNKNOWN_TOKEN = 2
_UNKNOWN = "[UNK]"
# The tokens of words counted lately, and how many of them are kept. Longer words seldom repeat,
# and may be secrets, above all with digits among the letters.
_word_counts: dict[str, int] = {}
MOST_WORDS, LONG_WORD, LONG_MIXED_WORD = 50_000, 20, 6
# A text of more different new words is hardly prose: they are counted together, so many at once.
MANY_NEW_WORDS, AT_ONCE = 20_000, 4096
# A larger number is nonsense, and does not fit the column of `Usage`.
MOST_REPORTED = 2**31 - 1
# Control characters that the tokenizer treats as blanks; it drops others.
_BLANKS = "\n\r\t"
# Punctuation is a token by itself, and case is ignored.
_MARKS = string.punctuation.encode()
_SPACED = bytes.maketrans(_MARKS, b" " * len(_MARKS))
_OTHER_MARKS = re.compile("[§·’‘“”–—…«»¿¡•]")
_NO_MARKS = string.ascii_letters.encode() + string.digits.encode() + b" "
# A word to every tokenizer: between blanks or line ends, with a sign that none of them drops.
_WORD = re.compile(r"[^ \n]*[A-Za-z0-9][^ \n]*")
# A word that the tokenizer changes nothing of before it looks for its pieces.
_PLAIN_WORD = re.compile(rf"[a-z0-9]{{1,{LONG_WORD}}}")


def count_tokens(text: str) -> int:
    """An overestimate; 0 for an empty text.

    About 2 million characters a second; ten times faster if its words were counted before.
    """
    if not text:
        return 0
    count = text.count("\n") + _sum_of_words(_readable(text))
    return max(1, round(count * SAFETY_FACTOR))


def reported_tokens(reported: object) -> int | None:
    """What a provider reports as a number of tokens; None if it is nonsense."""
    if isinstance(reported, int | float) and 0 <= reported <= MOST_REPORTED:
        return int(reported)
    return None


def _sum_of_words(text: str) -> int:
    """The sum of its words' tokens: WordPiece splits at blanks and marks first, so it is exact."""
    for blank in _BLANKS:
        text = text.replace(blank, " ")
    if text.isascii():
        return _sum_of_ascii(text)
    text, marks = _OTHER_MARKS.subn(" ", text)
    if text.isascii():
        return marks + _sum_of_ascii(text)
    words = text.split(" ")
    others = [word for word in words if not word.isascii()]
    return marks + _sum_of(others) + _sum_of_ascii(" ".join(filter(str.isascii, words)))


def _sum_of_ascii(text: str) -> int:
    if not text.isprintable():
        return _sum_of(text.split(" "))
    data = text.lower().encode()
    marks = len(data.translate(None, _NO_MARKS))
    return marks + _sum_of(data.translate(_SPACED).decode().split())


def _sum_of(words: list[str]) -> int:
    global _word_counts
    known = _word_counts
    found = list(map(known.get, words))
    new = list(compress(words, map(is_, found, repeat(None))))
    different = set(new)
    if len(different) > MANY_NEW_WORDS:
        return sum(filter(None, found)) + _sum_of_many(new)
    counts = _counts_of(list(different)) if new else {}
    if len(known) > MOST_WORDS:
        # Another thread may be adding up words of the former one.
        _word_counts = {}
    _word_counts.update({word: counts[word] for word in counts if _may_be_kept(word)})
    return sum(filter(None, found)) + sum(map(counts.__getitem__, new))


def _sum_of_many(words: list[str]) -> int:
    parts = (words[at : at + AT_ONCE] for at in range(0, len(words), AT_ONCE))
    return sum(sum(_counts_of([" ".join(part)]).values()) for part in parts)


def _may_be_kept(word: str) -> bool:
    return len(word) <= LONG_WORD and (word.isalpha() or len(word) <= LONG_MIXED_WORD)


def _counts_of(words: list[str]) -> dict[str, int]:
    """Each word's tokens."""
    vocabulary = _pieces()
    counts = {word: _split(word, *vocabulary) for word in words if _PLAIN_WORD.fullmatch(word)}
    others = [word for word in words if word not in counts]
    return counts | _tokenized(others) if others else counts


def _split(word: str, beginnings: frozenset[str], further: frozenset[str], longest: int) -> int:
    """The pieces of WordPiece, from the left always the longest that fits.

    For short words a quarter of the time that the tokenizer takes. Each letter and digit is a
    piece, so there is always one.
    """
    count, start, pieces = 0, 0, beginnings
    while start < len(word):
        end = min(len(word), start + longest)
        while word[start:end] not in pieces:
            end -= 1
        count, start, pieces = count + 1, end, further
    return count


@cache
def _pieces() -> tuple[frozenset[str], frozenset[str], int]:
    """Pieces that begin a word, those that continue it, and the length of the longest."""
    names = _tokenizer()[0].get_vocab()
    further = frozenset(name[2:] for name in names if name.startswith("##"))
    beginnings = frozenset(name for name in names if not name.startswith("##"))
    return beginnings, further, max(map(len, names))


def _tokenized(words: list[str]) -> dict[str, int]:
    """Each word's tokens, of all words in one call, which takes a fifth of the time."""
    tokenizer, unknown = _tokenizer()
    # The fast method gives no offsets.
    found = tokenizer.encode_batch_fast(words, add_special_tokens=False)
    ids = [encoding.ids for encoding in found]
    return {
        word: len(own) if unknown not in own else _counted_with_unknown(word)
        for word, own in zip(words, ids, strict=True)
    }


def _counted_with_unknown(text: str) -> int:
    tokenizer, unknown = _tokenizer()
    encoding = tokenizer.encode(text, add_special_tokens=False)
    ids = encoding.ids
    spans = [span for span, id_ in zip(encoding.offsets, ids, strict=True) if id_ == unknown]
    unread = (len(text[start:end].encode()) for start, end in spans)
    return len(ids) + sum(size // BYTES_PER_UNKNOWN_TOKEN for size in unread)


def least_tokens(text: str) -> int:
    """An underestimate of `count_tokens`, many times faster: each word is a token at least."""
    return round(len(_WORD.findall(text)) * SAFETY_FACTOR)


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@cache
def _tokenizer() -> tuple[Tokenizer, int]:
    tokenizer = Tokenizer.from_file(str(_tokenizer_file()))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    unknown: int = tokenizer.encode(_UNKNOWN, add_special_tokens=False).ids[0]
    return tokenizer, unknown


def _tokenizer_file() -> Path:
    model = LOCAL_MODELS[MODEL_NAME]
    installed = model.installed_folder()
    if installed:
        return installed / model.tokenizer
    return model_build.ensure_built(settings.MODELS_DIR) / model_build.TOKENIZER_FILE

"""Candidate phrases in a message: what a conversation could be about, in its speakers' own words.

There is no part-of-speech tagger here. Each word gets a one-letter class from word lists, its
ending and its neighbours; noun phrases are then patterns over the string of letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from typing import NamedTuple

from language.english import stem, stems, words

# Beyond this a message is pasted matter more than its writer's own words.
READ_CHARS = 1500
MOST_WORDS, MOST_WORDS_OF_TWO, MOST_WORDS_OF_THREE = 5, 6, 7

_TOKEN = re.compile(r"\d+(?:,\d+)+(?![^\W_])|[^\W_]+(?:['’&.+/-]?[^\W_]+)*(?:\+\+|#)?|[^\w\s]|\n")
_DETERMINERS = frozenset(
    "a an the my your his her our their this that these those some any each every another no its"
    " all both several many most such".split()
)
_PREPOSITIONS = {"of": "o", "for": "f", "in": "i", "with": "w", "on": "n", "about": "a"} | {
    "to": "t", "and": "&", "regarding": "a", "between": "p", "from": "p", "at": "p", "by": "p",
    "into": "p", "during": "p", "without": "p", "like": "p", "than": "p", "through": "p",
    "behind": "p",
}  # fmt: skip
_BEFORE_OBJECTS = _DETERMINERS - {"that", "no", "such"}
# "How did religion impact trade": rarely nouns between nouns.
_RELATING = frozenset("impact impacts influence influences shape shapes help helps".split())
_AFTER_DOING = ("o", "f", "i", "w", "t", "C")
_WEEKDAYS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays"
    " fridays saturdays sundays".split()
)
_MONTHS = frozenset(
    "January February March April May June July August September October November December".split()
)
_QUESTION_WORDS = frozenset("how what which why when where who whose".split())
# Above this cue a phrase is what somebody asks for.
_ASKED_FOR = 0.7
# Plural without showing it by their ending.
_PLURALS = frozenset("people women men children".split())
_SHAPELESS = frozenset("thing things way ways stuff".split())
_OBJECTS = frozenset("me it us them him you everything something anything up out off".split())

# N noun or unknown, C capitalised within a sentence, G word in -ing, M number, A adjective,
# E noun that says little, J adjective that says little, V verb, D determiner, x other, "." a stop;
# prepositions have letters of their own.
_TAIL = r"([DJ]?)([NCGMAE]*(?:[NCE]|(?<=[NCA])G))"
_PHRASE = re.compile(rf"([J]?)([NCGMEA]*[NCGE])(?:([ofiwt&]){_TAIL}(?:([ofiw&]){_TAIL})?)?")

# The classes of words that depend on what stands around them.
_BY_NEIGHBOURS = frozenset("?GgN")

# "Looong", "sooo".
_STRETCHED = re.compile(r"(.)\1{2,}")

# Nouns made from verbs share their stems.
_NOUN_ENDING = re.compile(
    r"(?:[ts]ions?|ments?|ness(?:es)?|[ae]nces?|it(?:y|ies)|[eo]rs?|ists?|ships?|isms?|als?|ures?)$"
)
_SUPERLATIVE = re.compile(r"(?<=...)est$")
_ADVERB_OR_ADJECTIVE = re.compile(r"(?<=...)(?:ly|ful|ous|less|[ai]ble)$")
_ADJECTIVE_ENDING = re.compile(r"(?:al|ive|ic|ish|iest)$")
_ASIDE = ("by the way", "btw", "speaking of")
_ASIDE_BEGINS = re.compile(rf"(?i)\b(?:{'|'.join(_ASIDE)})\b")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A candidate title.

    Attributes:
        text: As written, on one line.
        stems: Of its words that carry meaning.
        cue: Up to 1: how clearly its place in the sentence says "this is what it is about".
        proper: It begins with a name, so keeps its capital in the middle of a title.
        start: Index of its first character in the message.
    """

    text: str
    stems: frozenset[str]
    cue: float
    proper: bool
    start: int = 0


class _Token(NamedTuple):
    text: str
    lower: str
    start: int
    end: int


_NOTHING = _Token("", "", 0, 0)


def candidate_phrases(prose: str) -> Iterator[Phrase]:
    """Noun phrases of up to five words in the order of the text, longer forms before shorter."""
    read = _beginning(prose).replace("’", "'")
    tokens = [
        _Token(word := match[0], word.lower(), match.start(), match.end())
        for match in _TOKEN.finditer(read)
    ]
    tags = _tags(tokens)
    aside = _aside_from(prose)
    for match in _PHRASE.finditer(tags):
        cue = _cue(tags, tokens, match.start())
        if tokens[match.start()].start >= aside:
            cue -= 0.5
        for first, last, is_part in _forms(tags, tokens, match):
            # Of "cake for my friend's birthday", the birthday is not what is asked for.
            phrase = _phrase(prose, tokens, tags, first, last, cue - 0.4 * is_part)
            if phrase is not None:
                yield phrase


def _beginning(prose: str) -> str:
    """As much as is read, without the half of a word."""
    if len(prose) <= READ_CHARS:
        return prose
    return prose[: prose.rfind(" ", 0, READ_CHARS) + 1] or prose[:READ_CHARS]


def _aside_from(prose: str) -> int:
    """Where the message turns to something else in passing."""
    lower = prose.lower()
    if any(words in lower for words in _ASIDE):
        found = _ASIDE_BEGINS.search(prose)
        return found.start() if found and found.start() > 0 else len(prose)
    return len(prose)


def _forms(
    tags: str, tokens: list[_Token], match: re.Match[str]
) -> Iterator[tuple[int, int, bool]]:
    """Token ranges (end exclusive): with what is joined on, the head alone, both trimmed.

    Each with whether it is what another noun is of, or for.
    """
    (head_first, head_last), (tail_first, tail_last) = match.span(2), match.span(5)
    if match.group(3):
        says_enough = bool(set(match.group(2)) & set("NC"))
        # "Trip to Europe", but not "boots to Zara".
        leads_there = tags[head_last - 1] == "C" or tokens[head_last - 1].lower in words(
            "leading_to"
        )
        joins = match.group(3) != "t" or ("C" in match.group(5) and leads_there)
        first = head_first if says_enough and joins else tail_first
        for end in (match.end(8), tail_last):
            is_whole = end - first <= (
                MOST_WORDS_OF_TWO if end == tail_last else MOST_WORDS_OF_THREE
            )
            if end > 0 and is_whole and set(tags[tail_first:end]) & set("NC"):
                yield first, end, False
        if match.group(6):
            yield match.start(8), match.end(8), True
        is_part = says_enough and match.group(3) != "&"
        yield max(tail_first, tail_last - 4), tail_last, is_part
        if match.group(4) == "J":
            yield tail_first - 1, tail_last, is_part
    if match.group(1) and head_last - match.start() <= MOST_WORDS - 1:
        yield match.start(), head_last, False
    yield max(head_first, head_last - 4), head_last, False


def _phrase(
    prose: str, tokens: list[_Token], tags: str, first: int, last: int, cue: float
) -> Phrase | None:
    while last - first > 1 and (tags[first] in "MD" or tags[first : first + 2] == "EC"):
        first += 1
    kinds = tags[first:last]
    is_activity = kinds == "G" and tokens[first].lower in words("activities")
    # "Moving companies", "running routes".
    is_activity = is_activity or (kinds.removeprefix("J") == "GE" and cue >= _ASKED_FOR)
    if not ("N" in kinds or "C" in kinds or is_activity):
        return None
    if any(token.lower in _SHAPELESS for token in tokens[first:last]):
        return None
    if kinds[0] == "J" and tokens[first].lower in words("hollow"):
        return None  # The shorter form says the same.
    if kinds[0] == "G" and kinds[1:2] in _AFTER_DOING:
        return None  # "Visiting Rome", "staying in town": what is done, not what it is about.
    text = " ".join(prose[tokens[first].start : tokens[last - 1].end].split())
    text = text.removesuffix("'s").removesuffix("’s")
    if len(text) < 3 or len(text) > 60:
        return None
    meaning = frozenset(
        stem(tokens[at].lower.removesuffix("'s")) for at in range(first, last) if tags[at] in "NCG"
    )
    proper = tags[first] == "C" or sum(map(str.isupper, tokens[first].text)) > 1
    return Phrase(text, meaning, cue, proper, tokens[first].start)


def _cue(tags: str, tokens: list[_Token], at: int) -> float:
    """By what comes before the phrase that begins at token `at`."""
    before = at - 1
    while before >= 0 and tags[before] in "DJM":
        before -= 1
    if before < 0:
        return 0.3
    tag = tags[before]
    if tag == "a":
        return 1.0
    if tag in "nof":
        # "tips for X", "recommendations on X", "look for X".
        return 0.9 if before and tags[before - 1] in "EVJ" else 0.4
    if tag in "xV" and _opens_question(tags, tokens, before):
        return 0.6
    if tag == "V":
        return 0.8 if stem(tokens[before].lower) in stems("asking_verbs") else 0.4
    if tag == "p" and before and tags[before - 1] == "E":
        return 0.7  # "The motivations behind X".
    return 0.2 if tag in "iwt" else 0.1


def _opens_question(tags: str, tokens: list[_Token], last: int) -> bool:
    """Whether a question begins with these words: "how did", "what is"."""
    first = tags.rfind(".", 0, last + 1) + 1
    return last - first <= 1 and tokens[first].lower in _QUESTION_WORDS


def _tags(tokens: list[_Token]) -> str:
    tags: list[str] = []
    tag, before = ".", ""
    for token, following in zip_longest(tokens, tokens[1:], fillvalue=_NOTHING):
        known = _class_of(token.lower)
        if token.lower == "that" and tag in "NEC":
            tags.append(tag := "x")
            before = "who"  # "Ideas that use quinoa".
            continue
        if token.text in _MONTHS:
            known = "M"  # "March" within a sentence.
        if token.lower in _PLURALS and _is_plural(before, tag):
            known = "x"  # "Common mistakes people make".
        if tag != "." and known in "JAE?" and _is_in_name(token, following):
            tag = "C"
        elif known in _BY_NEIGHBOURS:
            tag = _tag(token, known, before, following.lower, tag)
        else:
            tag = known
        tags.append(tag)
        before = token.lower
    return "".join(tags)


def _is_in_name(token: _Token, following: _Token) -> bool:
    """The "New" of "New York": no word of a sentence, whatever it means elsewhere."""
    return token.text.istitle() and following.text[:1].isupper()


def _tag(token: _Token, known: str, before: str, after: str, tag_before: str) -> str:
    """
    Args:
        known: Its class by itself.
    """
    if known == "?":
        return _tag_of_either(token.lower, before, after, tag_before)
    if known in "Gg":
        if _is_plural(before, tag_before):
            return "V"  # "Activists making a stand".
        return _tag_of_ing(known, before, after, tag_before)
    if known == "N" and token.text[0].isupper() and tag_before != ".":
        return "C"
    return "V" if before in words("subjects") and known == "N" else known


def _is_plural(word: str, tag: str) -> bool:
    """Whether a verb in its basic form may follow, as hardly any noun may: "speakers use"."""
    if tag not in "NE" or word in words("attributive_plurals"):
        return False
    return word in _PLURALS or (word.endswith("s") and word[-2:] not in ("ss", "us", "is", "'s"))


def _tag_of_ing(known: str, before: str, after: str, tag_before: str) -> str:
    if before in words("being") or after in _BEFORE_OBJECTS or after in _OBJECTS:
        return "V"
    if known == "g":
        # "Machine learning", "pet grooming": but alone, the word says what is done.
        return "G" if tag_before in "NA" and _PREPOSITIONS.get(after, "&") in "&" else "V"
    return "G"


def _tag_of_either(word: str, before: str, after: str, tag_before: str) -> str:
    """A word that can be a verb or a noun."""
    if before in words("before_verbs"):
        return "V"
    has_object = after in _BEFORE_OBJECTS or after in _OBJECTS
    if tag_before not in "DJA" and (has_object or word in words("third_person")):
        return "V"
    if after == "to" and tag_before in "NC" and word in words("verbs_with_to"):
        return "V"
    if word == "love" and tag_before == ".":
        return "V"
    if _is_plural(before, tag_before) and not word.endswith("s"):
        return "V"
    if word in _RELATING and tag_before in "NC" and after not in ("of", "on"):
        return "V"
    if tag_before == "." and after in ("on", "for", "all's"):
        return "V"
    return "E" if _is_empty(word) else "N"


def _is_empty(word: str) -> bool:
    singular = f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
    return word in words("empty") or singular in words("empty")


@lru_cache(maxsize=50_000)
def _class_of(word: str) -> str:
    """The class of a word by itself; "?" can be verb or noun, "g" is a verb in -ing."""
    if word in words("adjectives"):
        return "A"
    base = _STRETCHED.sub(r"\1", word.removesuffix("'s"))
    for known, tag in _closed().items():
        if base in known:
            return tag
    if word in _PREPOSITIONS:
        return _PREPOSITIONS[word]
    if not word[0].isalnum():
        return "."
    if word[0].isdigit():
        return "M"
    can_be_verb = stem(word) in stems("verbs_or_nouns") and not word.endswith("ing")
    if _is_empty(base) and not can_be_verb:
        return "E"
    return _class_by_ending(word)


def _class_by_ending(word: str) -> str:
    root = stem(word)
    is_inflected = root != word and len(word) > 4
    if is_inflected and word.endswith("ing"):
        return _class_of_ing(word, root)
    if _NOUN_ENDING.search(word) and not _is_listed_verb(word):
        return "A" if word.endswith("al") and word not in words("not_adjectives") else "N"
    if is_inflected and word.endswith("ed"):
        return "V"
    ending = _ADVERB_OR_ADJECTIVE.search(word)
    if ending and word not in words("not_adjectives") | words("not_adverbs"):
        return "x" if ending.group() == "ly" else "A"
    known = _class_by_root(word, root)
    is_superlative = known == "N" and _SUPERLATIVE.search(word)
    return "D" if is_superlative and word not in words("not_adjectives") else known


def _class_of_ing(word: str, root: str) -> str:
    if word in words("activities") or root in stems("verbs_or_nouns"):
        return "G"
    return "g" if root in stems("verbs") else "G"


def _class_by_root(word: str, root: str) -> str:
    if root in stems("verbs_or_nouns"):
        return "?"
    if root in stems("verbs"):
        return "V"
    is_adjective = _ADJECTIVE_ENDING.search(word) and word not in words("not_adjectives")
    return "A" if is_adjective and len(word) > 5 else "N"


def _is_listed_verb(word: str) -> bool:
    listed = words("verbs") | words("verbs_or_nouns")
    return word in listed or word.removesuffix("s") in listed


@cache
def _closed() -> dict[frozenset[str], str]:
    prepositions = frozenset(_PREPOSITIONS)
    return {
        _DETERMINERS: "D",
        (words("function") | words("adverbs") | words("greetings")) - prepositions: "x",
        words("bland"): "J",
        _WEEKDAYS: "x",
        frozenset(("using", "looking", "having", "wondering", "starting")): "V",
    }


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

# Fewer words than this say too little to tell the language by.
_ENOUGH_WORDS = 6
# English prose is about half function words; other languages share a few by accident.
_ENGLISH_SHARE = 0.22


def is_english(text: str) -> bool:
    """Whether the beginning of `text` reads as English; what is too short to tell does."""
    found = [word.lower() for word in _WORD.findall(text[:400].replace("’", "'"))]
    if len(found) < _ENOUGH_WORDS:
        return text.isascii() or len(found) > len(text) / 20
    function = words("function")
    return sum(word in function for word in found) >= _ENGLISH_SHARE * len(found)

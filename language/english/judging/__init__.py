"""English judging: rules decide what becomes of a statement, given the known facts.

Here is how the wording of two statements compares: stems, overlap, synonyms and idioms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from language.english import text_of
from language.english.facts.vocabulary import ALLOWS, IS_GONE, IS_WELL, NUMBER_WORD

_EMPTY = frozenset(
    "a an the of in at on to for and or with my their his her our is are be was named called new "
    "very really some any it every each as by from into user s own also now still just".split()
)
_SIMILAR_NAMES = 0.7
_ALLOWED = re.compile(rf"(?i)\b{ALLOWS} .* again\b")
_WELL = re.compile(rf"\b{IS_WELL}")
# Not "Anna is gone".
_GONE = re.compile(rf"\b[a-z-]+ {IS_GONE}")
# A trip that is off is none; a lamp that is off is there, and summer is liked when it is over.
_OFF = re.compile(r"\b(?:is|are) (?:finally |now |all )*(?:off|over)\b")
_AILMENTS = frozenset({"has_condition", "takes"})
_MAY_BE_OFF = frozenset({"plans", "wants"}) | _AILMENTS
_A_JOB = re.compile(r"(?i)\b(?:internship|apprenticeship|traineeship|placement|job|contract)\b")
# "Google rejected me" ends no use of Google Drive.
_REFUSED = re.compile(r"\b(?:rejected|turned \w+ down|did not take|said no to) ?")
_NO_RAISE = re.compile(r"\bfor (?:the|an?|my) (?:[\w-]+ )?(?:raise|rise|promotion|transfer)\b")
_HOPED_FOR = frozenset({"works_at", "plans", "wants"})
_NOT = re.compile(r"(?i)\b(?:not|no longer|never|cannot|nobody)\b")


@lru_cache(maxsize=20_000)
def words_of(text: str) -> frozenset[str]:
    """The stems of a text without function words: "the cats" and "a cat" give the same set.

    Signs tell names apart: C, C++ and C#.
    """
    found = re.findall(
        r"[^\W_]+(?:[.,]\d+|[+#]+(?!\w))?", text.lower().replace("'s", "").replace("’s", "")
    )
    return frozenset(_stem(word) for word in found if word not in _EMPTY)


_SAME_STEM = dict.fromkeys(("wedding", "weddings", "marry", "marries", "marriage"), "marri")


def _stem(word: str) -> str:
    """A rough stem: plurals and gerunds match their base form."""
    if word in _SAME_STEM:
        return _SAME_STEM[word]
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
    " mg mcg g ml kg km euro pound dollar hour time times week day month"
)


def without_figures(text: str) -> frozenset[str]:
    """The words without amounts: "sertraline" of "50 mg of sertraline"."""
    return frozenset(
        word for word in words_of(text) if not word[0].isdigit() and word not in _COUNTS
    )


def spelt_alike(one: str, other: str) -> bool:
    return SequenceMatcher(None, one.lower(), other.lower()).ratio() >= _SIMILAR_NAMES


def denies(text: str) -> bool:
    """Whether a statement says that something is not so."""
    return _NOT.search(text) is not None


# The words of a line are synonyms in a short statement; the first stands for all.
_ONE_FOR = {
    word: min(words_of(first), default="")
    for line in text_of("synonyms").splitlines()
    for first, *rest in [line.split()]
    for other in (first, *rest)
    for word in words_of(f"{other} {other}s")
}
# Idioms, replaced before the text is split into words.
_PHRASES = tuple(
    (re.compile(rf"(?i)\b(?:{pattern})\b"), plain)
    for pattern, plain in (
        (r"(?:can't|can’t|cannot|can not) stand", "dislikes"),
        (r"(?:does not|doesn't|doesn’t) (?:like|enjoy|care for)|is not a fan of", "dislikes"),
        (r"would like|wishes|would love", "wants"),
        (r"would rather have|likes? better", "prefers"),
        (r"suffers from|struggles with|gets", "has"),
        (r"two times", "twice"),
        (r"elder", "older"),
        (r"a little|a bit of", "some"),
        (r"(?:can|is able to) (?:use|speak)", "knows"),
        (r"is (?:currently )?based in|is at home in", "lives in"),
        (r"nobody else|no one|alone", "nobody"),
    )
)
_CONTRACTED_NOT = re.compile(r"n['’]t\b")
_NONE = re.compile(r"(?i)\b(?:no|without|none)\b")
# Adding or leaving out one of these does not change what a statement says.
LIGHT = frozenset(
    words_of(
        "currently usually generally quite actually always often regularly both all about that who"
        " which it's person user's there being been were do does did own go day quite much lot lots"
        " together into up down out over am one you they them this these those i me we"
        " playing doing taking"
    )
    | {"possess", "go", "day", "doe", "1"}
)
_DENYING = words_of("not no longer never cannot nobody none nothing without do does any")
# Adding one of these narrows a statement, so that it says something else.
NARROWING = words_of(
    "only except unless when if sometimes rarely but without before after used until during while"
    " instead than rather until except formerly previously former ex once almost nearly half"
)
# Signs tell names apart as figures do: C, C++.
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*|\b\w[+#]+")
_NAME = re.compile(r"\b[A-Z][\w’'-]*")
_YEAR = re.compile(r"^(?:19|20)\d\d$")
_NUMBERED = re.compile(
    r"\b[A-Z]\w*,? (?:no\. )?\d|\b(?:chapter|volume|part|number|room|level|step|version|season|"
    r"episode|grade|page|line|unit|phase|floor|platform|bus|tram|route|gate|class|module|week|day)"
    rf" (?:\d|{NUMBER_WORD}\b)"
)
_LISTED = re.compile(r"[A-Z]\w*(?:(?:, | and | or |, and )[A-Z]\w*)+")
# A statement with one of these may be about a relative or a pet.
_KIN = words_of(
    "son daughter child baby mother father parent brother sister sibling wife husband spouse"
    " partner grandmother grandfather uncle aunt cousin nephew niece dog cat pet horse neighbour"
    " friend colleague flatmate roommate"
)
_TURNING = re.compile(
    r"\b(?:to|over|than|before|after|from|instead of|rather than|between|for|by)\b"
)


def plainly(text: str) -> str:
    """The text with idioms and contractions replaced by plain words."""
    for pattern, plain in _PHRASES:
        text = pattern.sub(plain, text)
    return _CONTRACTED_NOT.sub(" not", text)


@lru_cache(maxsize=20_000)
def meant(text: str) -> frozenset[str]:
    """The words of a text, synonyms made one."""
    return frozenset(_ONE_FOR.get(word, word) for word in words_of(text))


@dataclass(frozen=True, slots=True)
class Wording:
    """What comparing a fact's text needs.

    Attributes:
        words: The words of the text, synonyms made one.
        object: Likewise of the fact's object.
        figures: Its amounts and dates.
        names: Its names in order, without one that begins it.
        denied: It says that something is not so.
    """

    words: frozenset[str]
    object: frozenset[str]
    figures: frozenset[str]
    names: tuple[str, ...]
    denied: bool

    @property
    def asserted(self) -> frozenset[str]:
        """What it asserts or denies."""
        return self.words - _DENYING

    @property
    def kin(self) -> frozenset[str]:
        """The relatives and pets that it names."""
        return self.words & _KIN


def wording_of(text: str, obj: str) -> Wording:
    """The wording of a fact, from its text and its object."""
    text = plainly(text)
    _, _, rest = text.partition(" ")
    digits = {word for word in meant(text) if word[:1].isdigit()}
    # The order of a list does not matter.
    rest = _LISTED.sub(lambda names: " ".join(sorted(_NAME.findall(names[0]))), rest)
    return Wording(
        words=meant(text),
        object=meant(plainly(obj)),
        figures=frozenset(_FIGURE.findall(text)) | digits,
        names=tuple(name.removesuffix("'s").removesuffix("’s") for name in _NAME.findall(rest)),
        denied=denies(text) or _NONE.search(text) is not None,
    )


def is_turned(one: str, other: str) -> bool:
    """Whether the same words are in another order: "tabs to spaces", "spaces to tabs"."""
    if not (_TURNING.search(one) and _TURNING.search(other)):
        return False
    first, second = _in_order(plainly(one)), _in_order(plainly(other))
    return first != second and sorted(first) == sorted(second)


def counts(text: str) -> bool:
    """Whether the figures of a text are amounts, and neither years nor parts of names."""
    if _NUMBERED.search(text):
        return False
    return not any(_YEAR.match(figure) for figure in _FIGURE.findall(text))


def _in_order(text: str) -> list[str]:
    found = (meant(word) for word in re.findall(r"[^\W_]+", text))
    return [min(words) for words in found if words]


def may_end(said: str, predicate: str, category: str) -> bool:
    """Whether what is said to be over in such words may be a fact of this kind."""
    if _ALLOWED.search(said):
        return category == "instructions"
    if _WELL.search(said):
        return predicate in _AILMENTS
    if _GONE.search(said):
        return predicate == "has_condition"
    if _OFF.search(said):
        return predicate in _MAY_BE_OFF or (
            predicate in _HOPED_FOR and _A_JOB.search(said) is not None
        )
    if predicate == "works_at" and _NO_RAISE.search(said):
        return False
    return predicate in _HOPED_FOR or _REFUSED.search(said) is None

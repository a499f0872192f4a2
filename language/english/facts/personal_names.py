"""What may be the name of a person, as it is written: with capitals, a title, in small letters."""

from __future__ import annotations

import re

from language.english.facts.verbs import PAST, THIRD
from language.english.lexicon import words

NAME = (
    r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’\-]*[\w](?:\s(?:(?:de|van|von|da|del|der|la"
    r"|O')\s)?[A-ZÀ-ÖØ-Þ][\w'’\-]+){0,2}"
)
ONE_NAME = r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w\-]*\w"
# Words that begin with a capital and are no names.
NOT_NAMES = frozenset(
    """I I'm The This That It He She We They You And But So In On At If When My Our Your His Her
    Also January February March April May June July August September October November
    December Monday Tuesday Wednesday Thursday Friday Saturday Sunday Christmas Easter
    English Spanish French German Thanks Hi Hey Hello Ok Okay Yes No Well Oh Just Really
    Today Tomorrow Yesterday God Lord Mom Dad Mum PhD MBA CEO CTO ADHD USA UK US EU Please
    Also Sure Sorry Not Who What Which Where Why How American British Indian Chinese
    Japanese Italian Dreamt Dreamed Had Got Been Measured Threw Swapped Sold Quit
    Moved Left Lost Gave Stopped Started Mr Mrs Ms Dr Born North South East West
    Level Tier Team Type Gen Stage Grade Rank Class Year Group""".split()
)
# A title makes a name of a word that many people write in small letters.
TITLED = re.compile(
    r"(?i)\b(?P<title>mr|mrs|miss|ms|dr|aunty|auntie|uncle|nan|nana|grandad)\.? "
    r"(?P<name>[^\W\d_][\w'-]+[^\W_])(?!')"
)

# Lists of words of which none is a name, unless it is in a list of names too.
_COMMON = ("function", "adverbs", "verbs", "verbs_or_nouns", "bland", "empty", "not_names")


def may_be_name(said: str) -> bool:
    """Whether words at the beginning of a clause, where any word has a capital, may be a name."""
    first = re.split(r"[\s'’]", said)[0]
    plain = first.lower()
    if first in NOT_NAMES or said.endswith(("'s", "’s")):
        return False
    if plain in words("first_names") or plain in words("also_words"):
        return True
    return (
        plain not in THIRD
        and plain not in PAST
        and not any(plain in words(kind) for kind in _COMMON)
    )


def is_first_name(said: str) -> bool:
    return said.lower() in words("first_names")


def small_name(said: str) -> str:
    """ "ana" as "Ana"; empty where it is no first name, or a word as well: "may", "rich"."""
    also = said in words("also_words") or any(said in words(kind) for kind in _COMMON)
    return said.capitalize() if said.islower() and is_first_name(said) and not also else ""


def titled_name(found: re.Match[str]) -> str | None:
    """ "mrs colquhoun" as "Mrs Colquhoun"; None where a title is no title: "miss him"."""
    name = found["name"]
    if not may_be_name(name.capitalize()) or name.lower() in words("function"):
        return None
    return f"{found['title'].capitalize()} {name[:1].upper()}{name[1:]}"

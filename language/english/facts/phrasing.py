"""Sentences in the third person, from what people said in the first."""

from __future__ import annotations

import re

from language.english.facts.verbs import Tense, gerund, past, third_person

_PRONOUNS = {
    "i am": "they are", "i have": "they have", "i was": "they were", "i": "they", "we": "they",
    "my": "their", "our": "their", "me": "them", "us": "them", "mine": "theirs", "ours": "theirs",
    "myself": "themselves", "ourselves": "themselves", "am": "are",
}  # fmt: skip
_FIRST_PERSON = re.compile(
    r"\b(?:i am|i have|i was|i|we|my|our|me|us(?=\s|$)|mine|ours|myself|ourselves)\b(?!\.\w)",
    re.IGNORECASE,
)


def third(words: str) -> str:
    """Of what follows a verb: "my own flat" is "their own flat"; US stays a country."""

    def said_of(match: re.Match[str]) -> str:
        word = match[0]
        return word if word in ("US", "MY") else _PRONOUNS[word.lower()]

    return _FIRST_PERSON.sub(said_of, words)


def sentence(label: str, says: str, *, tense: Tense, negated: bool, ended: bool) -> str:
    """
    Args:
        label: Who it is about: "User", "Anna, User's sister,".
        says: The verb in its base form and what follows: "live in Porto".
    """
    return f"{label} {_conjugated(says, tense, negated=negated, ended=ended)}"


def _conjugated(says: str, tense: Tense, *, negated: bool, ended: bool) -> str:
    verb, _, rest = says.partition(" ")
    if tense is Tense.USED_TO:
        return f"used to {says}"
    if tense is Tense.PAST:
        return _past(verb, rest, negated=negated)
    if tense is Tense.PROGRESSIVE:
        return f"is {gerund(verb)} {rest}".strip()
    if ended:
        return f"no longer {third_person(verb)} {rest}".strip()
    if negated:
        return _not(verb, rest)
    return f"{verb if verb == 'can' else third_person(verb)} {rest}".strip()


def _past(verb: str, rest: str, *, negated: bool) -> str:
    if negated:
        return f"was not {rest}" if verb == "be" else f"did not {verb} {rest}".strip()
    return f"{past(verb)} {rest}".strip()


def _not(verb: str, rest: str) -> str:
    if verb in ("be", "can"):
        return f"{'is not' if verb == 'be' else 'cannot'} {rest}"
    return f"does not {verb} {rest}".strip()


_VOWEL = re.compile(r"[aeio]|u(?!ni|se|kulele)|h(?:onest|our)", re.IGNORECASE)


def article(noun: str) -> str:
    """ "a nurse", "an engineer"; what has an article or a possessive keeps it."""
    if re.match(r"(?:an?|the|my|his|her|their|our)\b", noun, re.IGNORECASE):
        return noun
    return f"{'an' if _VOWEL.match(noun) else 'a'} {noun}"


# Said between the members of a list, or after the last one.
_ASIDES = frozenset(
    "by the way/btw/of course/actually/honestly/to be honest/tbh/I think/I mean/you know"
    "/as you know/in fact/unfortunately/sadly/apparently".split("/")
)


def listed(words: str) -> list[str]:
    """The members of a list: "Spanish, French and a bit of Dutch"."""
    parts = re.split(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&|plus)\s+(?:also\s+)?", words)
    members = map(str.strip, parts)
    return [member for member in members if member and member not in _ASIDES]

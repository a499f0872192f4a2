"""Sentences in another person: said in the first, stored in the third, shown in the second.

Facts are stored in the third person, since a model reads them beside what others say: "User lives
in Porto" is "You live in Porto" on a page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from language.english.facts.verbs import BASE, PAST, THIRD, Tense, gerund, past, third_person
from language.facts import USER

# Several people who are spoken of as one: "my parents live in Ghent".
SEVERAL = frozenset("parents folks grandparents in-laws children kids".split())

_PRONOUNS = {
    "i am": "they are", "i have": "they have", "i was": "they were", "i": "they", "we": "they",
    "my": "their", "our": "their", "mine": "theirs", "ours": "theirs",
    "myself": "themselves", "ourselves": "themselves", "am": "are",
}  # fmt: skip
_FIRST_PERSON = re.compile(
    r"(?i)\b(?:i am|i have|i was|i|we|my|our|mine|ours|myself|ourselves)\b(?!\.\w)"
)
_SECOND = {
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "isn't": "aren't",
    "wasn't": "weren't",
    "hasn't": "haven't",
    "doesn't": "don't",
}
_SAME = frozenset("can cannot could will would should may might must did had used put said".split())
# A second verb of the same subject, after "and"; "plays" and "books" may be nouns there.
_SURELY_VERBS = frozenset(
    "is was has does lives likes owns wants prefers enjoys hates dislikes thinks speaks eats goes"
    " loves knows takes keeps gives becomes teaches studies learns listens swims".split()
)
_ADVERBS = frozenset(
    "no longer not never always often also still usually sometimes rarely once just even already"
    " both seldom now".split()
)
_OWNERS = (f"{USER}'s", f"{USER}’s")
# "User Guide" is a name; who is told or given something capital is the user: "send User Python".
_GIVES = r"(?P<gives>\b(?:call|give|send|show|teach|tell|ask|remind) )"
_USER = re.compile(rf"{_GIVES}{USER}\b|\b{USER}(?P<owner>['’]s)?\b(?! [A-Z])")
# "Them" may be others, so the user is named where something is done to them.
_OBJECT = r"(?:me|us(?=\s|$))\b(?!\.\w)"
_OBJECT_FIRST = re.compile(rf"(?i){_GIVES}{_OBJECT}|\b{_OBJECT}")
_OBJECT_SECOND = re.compile(rf"{_GIVES}you\b|\byou\b")
_JOINED = re.compile(r"(?P<joint>,? (?:and|but|or) (?:\w+ly )?)(?P<verb>\w+)(?= \w)")
# After these the next "I", "you" or "User" is a subject, and the word behind it its verb.
_CLAUSE = (
    r"\b(?P<joint>(?:how|what|when|whenever|where|why|whether|if|because|while|unless|until|that|like)"
    rf" )(?:{{who}}) (?P<says>(?:(?:{'|'.join(sorted(_ADVERBS))}|\w+ly) )*[a-z][\w'’]*)"
)
_CLAUSE_FIRST = re.compile(_CLAUSE.format(who="[Ii]|we"))
_CLAUSE_SECOND = re.compile(_CLAUSE.format(who="you"))
_CLAUSE_THIRD = re.compile(_CLAUSE.format(who=USER))
# "Queen and their music" is not the user's.
_THEIR = re.compile(r"(?<!and )\b(?:their|themselves)\b")
_YOUR = re.compile(r"\b(?:your|yourself)\b")
_YOURS = {"their": "your", "themselves": "yourself"}
_THEIRS = {second: third for third, second in _YOURS.items()}
# Written of oneself where a page says "You".
_FIRST = {
    "I": "You", "I'm": "You are", "I’m": "You are", "I've": "You have", "I’ve": "You have",
    "My": "Your",
}  # fmt: skip
_INNER_FIRST = {"my": "your", "me": "you", "myself": "yourself"}
# What people write of themselves, and read of themselves on pages.
_READER = re.compile(r"(?i)\b(?:(?P<whose>my|mine|your|yours)|I|me|myself|you|yourself)\b")


def about_user(question: str) -> str:
    """ "where do I live" as "where do User live": no sentence, but close in meaning to the fact."""
    return _READER.sub(lambda word: f"{USER}'s" if word["whose"] else USER, question)


def to_second_person(sentence: str) -> str:
    """ "User lives in Porto" as "You live in Porto"; further inside, "User" becomes "you"."""
    subject, _, rest = sentence.partition(" ")
    if subject in _OWNERS:
        return f"Your {_inside(rest)}"
    if subject != USER:
        return _inside(sentence)
    rest = _JOINED.sub(_joined, _with_verb(rest, _second))
    return f"You {_THEIR.sub(lambda word: _YOURS[word[0]], _inside(rest))}".rstrip(" ")


def to_third_person(sentence: str, like: str = "") -> str:
    """ "You live in Porto" as "User lives in Porto": what `to_second_person` undoes.

    "I live in Porto" is the same.

    Args:
        like: The stored sentence from which `sentence` was edited; where both begin with the same
            words, its forms are kept.
    """
    subject, _, rest = _addressed(sentence).partition(" ")
    if subject == "Your":
        return f"{USER}'s {_named(rest)}"
    if subject != "You" or not rest:
        return sentence
    kept = _kept(rest.split(" "), like)
    rest = " ".join(rest.split(" ")[len(kept) :])
    if all(word in _ADVERBS for word in kept):
        rest = _with_verb(rest, _third)
    rest = _YOUR.sub(lambda word: _THEIRS[word[0]], _named(rest))
    return " ".join([USER, *kept, rest]).rstrip(" ")


def _addressed(sentence: str) -> str:
    """ "I am glad of my flat" as "You are glad of your flat"."""
    first, space, rest = sentence.partition(" ")
    if first not in _FIRST:
        return sentence
    rest = re.sub("^am ", "are ", rest)
    rest = re.sub(r"\b(?:my|me|myself)\b", lambda word: _INNER_FIRST[word[0]], rest)
    return f"{_FIRST[first]}{space}{rest}"


def _kept(words: Sequence[str], like: str) -> list[str]:
    """The stored words at the beginning that the edited sentence still has."""
    shown = to_second_person(like).split(" ")
    stored = like.split(" ")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(shown, ["You", *words], strict=False))
    return stored[1 : sum(1 for _ in same)]


def _inside(words: str) -> str:
    """With "you" for "User"; what `_named` undoes, but for "your"."""

    def read(user: re.Match[str]) -> str:
        return "your" if user["owner"] else f"{user['gives'] or ''}you"

    return _USER.sub(read, _clauses(_CLAUSE_THIRD, "you", _second, words))


def _named(words: str) -> str:
    named = _clauses(_CLAUSE_SECOND, USER, _third, words)
    return _OBJECT_SECOND.sub(lambda found: _object(found, found[0]), named)


def _object(found: re.Match[str], otherwise: str) -> str:
    """ "User", unless that would be read as the beginning of a name."""
    if found["gives"]:
        return found["gives"] + USER
    is_name = re.match(r" [A-Z]", found.string[found.end() :])
    return otherwise if is_name else USER


def _clauses(clause: re.Pattern[str], who: str, conjugate: Callable[[str], str], words: str) -> str:
    def said(found: re.Match[str]) -> str:
        return f"{found['joint']}{who} {_with_verb(found['says'], conjugate)}"

    return clause.sub(said, words)


def _joined(found: re.Match[str]) -> str:
    verb = found["verb"]
    return found["joint"] + (_second(verb) if verb in _SURELY_VERBS else verb)


def _with_verb(rest: str, conjugate: Callable[[str], str]) -> str:
    """With its first verb, the first word that is no adverb, in another person."""
    words = rest.split(" ")
    for at, word in enumerate(words):
        if word in _ADVERBS or (word.endswith("ly") and word not in BASE):
            continue
        bare = word.rstrip(",.!?;:")
        words[at] = conjugate(bare) + word[len(bare) :]
        break
    return " ".join(words)


def _second(verb: str) -> str:
    """ "lives" as "live"; a past form stays."""
    if verb in _SECOND:
        return _SECOND[verb]
    if verb in THIRD:
        return THIRD[verb]
    if verb in PAST or not verb.endswith("s") or verb.endswith(("ss", "us", "is")):
        return verb
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    return verb[:-2] if verb.endswith(("shes", "ches", "xes", "zes", "sses", "oes")) else verb[:-1]


def _third(verb: str) -> str:
    """ "live" as "lives"; modal verbs and past forms stay."""
    if verb == "am":
        return "is"
    if verb in _SECOND.values():
        return next(third for third, second in _SECOND.items() if second == verb)
    if verb in BASE:
        return verb if verb in _SAME else third_person(verb)
    is_past = verb in PAST or verb in _SAME or verb.endswith("ed")
    return verb if is_past or not verb.isalpha() else third_person(verb)


# "Book I", "bipolar I", "type I diabetes"; not "the book I bought".
_NUMBERED = re.compile(
    r"\b(?:Book|Part|Volume|Chapter|Act|War|Phase|Type|Level|Class|Stage|Section|[Bb]ipolar) I\b"
    r"|\b(?i:type) I(?= diabetes)"
)


def _is_number(one: re.Match[str]) -> bool:
    found = _NUMBERED.search(one.string, max(one.start() - 10, 0))
    return found is not None and found.end() == one.end()


def third(words: str) -> str:
    """Of what follows a verb: "my own flat" is "their own flat"; US stays a country.

    The user is named where "they" and "them" might be others: "good for me", "how I feel".
    """

    def said_of(match: re.Match[str]) -> str:
        word = match[0]
        is_number = word == "I" and _is_number(match)
        return word if is_number or word in ("US", "MY") else _PRONOUNS[word.lower()]

    def named(match: re.Match[str]) -> str:
        return match[0] if match[0].endswith("US") else _object(match, "them")

    words = _clauses(_CLAUSE_FIRST, USER, _third, words)
    return _FIRST_PERSON.sub(said_of, _OBJECT_FIRST.sub(named, words))


def sentence(label: str, says: str, *, tense: Tense, negated: bool, ended: bool) -> str:
    """
    Args:
        label: Who it is about: "User", "Anna, User's sister,".
        says: The verb in its base form and what follows: "live in Porto".
    """
    said = _conjugated(says, tense, negated=negated, ended=ended)
    is_several = label.rpartition(" ")[2] in SEVERAL
    return f"{label} {_with_verb(said, _second) if is_several else said}"


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


_VOWEL = re.compile(r"(?i)[aeio]|u(?!ni|se|kulele)|h(?:onest|our)")


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


_HOW = re.compile(r"[a-z]+(?:ing|ed|ous|al|ate)ly")
_SOME = re.compile(r"\A(?:some|a (?:bit|little)(?: of)?) (?=[A-Z])")


def listed(words: str) -> list[str]:
    """The members of a list: "Spanish, French and a bit of Dutch"."""
    parts = re.split(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&|plus)\s+(?:also\s+)?", words)
    members = (_SOME.sub("", part.strip()) for part in parts)
    return [one for one in members if one and one not in _ASIDES and not _HOW.fullmatch(one)]

"""Whom a clause is about, and what is left of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from language.candidate import Thing
from language.english.facts.ellipsis import filled_in
from language.english.facts.people import ABSENT, NAME, NOT_NAMES, Company, Person
from language.english.facts.roles import role_in

_OPENERS = re.compile(
    r"\A(?:(?:hi|hey|hello|hiya|ok|okay|so|well|yes|yeah|yep|yup|oh|ah|aw|btw"
    r"|by the way|also|and|but|plus|anyway|honestly|fyi|just so you know"
    r"|for context|for reference|some context|context|background|as I (?:mentioned"
    r"|said)(?: before| earlier)?|as you know|in fact|to be honest|tbh|thanks|thank you"
    r"|great"
    r"|cool|wow|sure|hmm|um|uh|right|fun fact|quick update|update|good news|bad news"
    r"|big news|sad news|guess what|personally|unfortunately|luckily"
    r"|finally|fortunately|sadly|happily|because|cause|since(?= (?:I|we|my|our)\b)"
    r"|although|though|even though|while|whereas|as|then|now that|given that|now"
    r"|currently|these days|nowadays|at the moment|recently|lately"
    r"|I mean|you see|look|listen|remember that|remember|keep in mind(?: that)?"
    r"|note that|bear in mind(?: that)?|know that|please note(?: that)?|you know|yet"
    r"|still|actually|basically|long story short|ps|p\.s\.|lol|haha|funny|turns out"
    r"|it turns out(?: that)?|thing is|the thing is|my problem is(?: that)?"
    r"|I (?:told you|said|mentioned|already said|already told you|forgot to (?:say"
    r"|mention)|should (?:mention|add|say)|have to (?:say|admit)|must (?:say|admit)"
    r"|admit|also|think I should mention|realised|realized|can confirm"
    r"|forgot to tell you)(?: earlier| before)?(?: that)?"
    r"|no(?! longer\b)|nope|sorry|correction|oops|wait|I meant|scratch that|my mistake|my bad|typo"
    r"|wrong|I got that wrong|I misspoke|ever since|after all|in case you wonder"
    r"|a bit about me|about me|me|or rather|rather|edit|good morning|good evening"
    r"|long night|new here|ngl|not gonna lie|quick one|heads up|for the record|in other news|so"
    r" yeah)"
    r"(?=[\s,:!.;—–-])[\s,:!.;—–-]*)",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\b(?:no|nope|sorry|correction|oops|wait|I meant|I mean|scratch that|my mistake"
    r"|my bad|typo|wrong|I got (?:that|it) wrong|I misspoke|actually|or rather|edit)\b",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"\A(?:no,? wait|no,? sorry|sorry,? (?:wrong|no|I meant?|it is|my|I (?:live|work"
    r"|am))|wrong|correction"
    r"|oops|scratch that|I misspoke|I meant)\b"
    r"|\bI (?:got|had) (?:that|it|this) wrong\b|\bI was mistaken\b|\bmy mistake\b"
    r"|\bnot [A-Z]\w+, (?:but|it is)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"\A(?P<lead>(?:in|on|at|since|for|last|next|every|each|yesterday|today|tomorrow"
    r"|tonight|this|during|around|back in|until|from|after|before|over|by|two|three"
    r"|a few|one|once|twice|most|before|starting|as of|\d+)\b"
    r"[^;?!]{0,60}?),?\s+(?=(?:I|we|User|he|she)\s)",
    re.IGNORECASE,
)
FRAGMENT = re.compile(
    r"\A(?:in|on|at|since|for|last|next|every|each|yesterday|today|tomorrow|tonight"
    r"|this|during|around|back in|until|from|over|by|two|three|a few|one|once|twice"
    r"|most|starting|as of|\d+)\b(?!.*\b(?:I|you|is|are|was)\b)",
    re.IGNORECASE,
)
_SELF = re.compile(r"\A(?:I|[Ww]e|User|[Tt]he user)\b(?!')\s*(?:(?:both|all|two)\s+)?")
_SELF_AND = re.compile(
    rf"\A(?:[Mm]y [\w\s-]{{2,40}}?|{NAME}) and I\b\s*|\AI and my [\w-]+\s+"
    rf"|\AMe and [\w\s]{{2,30}}?(?= (?:live|work|moved|are|have|went|got)\b)"
)
_PRONOUN = re.compile(r"\A(?P<who>he|she)\b\s*", re.IGNORECASE)
_NAMED = re.compile(rf"\A(?P<name>{NAME})\b(?!')(?:\s+and (?!I\b)\w+)?,?\s+")


@dataclass(frozen=True, slots=True)
class Subject:
    """
    Attributes:
        rest: What is said of whoever it is.
        lead: What stood before: "Last year".
        corrects: The clause begins by taking something back.
        stranger: Nobody has told who they are.
    """

    person: Person
    rest: str
    lead: str = ""
    corrects: bool = False
    stranger: bool = False


def without_openers(text: str) -> tuple[str, str]:
    """The clause itself, and the words that only open it: "Well, actually, "."""
    whole = text
    while (opener := _OPENERS.match(text)) and opener.end() < len(text):
        text = text[opener.end() :]
    return text, whole[: len(whole) - len(text)]


def takes_back(sentence: str) -> bool:
    """Whether it is told to put right what was said before."""
    return _TAKES_BACK.search(sentence) is not None


def corrects(opening: str) -> bool:
    return _CORRECTS.search(opening) is not None


def subject_of(text: str, company: Company) -> Subject | None:
    """None where it is about nobody we know of."""
    text, opening = without_openers(text)
    if re.search(r"\b(?:I|we)\b\Z", opening.strip()):
        return None
    lead = _LEAD.match(text)
    before = lead["lead"] if lead else ""
    if lead:
        text, _ = without_openers(text[lead.end() :])
    found = (
        _self(text, company)
        or _theirs(text, company)
        or _left_out(text, company)
        or _known(text, company)
    )
    if found is None:
        return None
    person, rest, stranger = found
    return Subject(person, rest, before, corrects(opening), stranger)


_Found = tuple[Person, str, bool]


def _self(text: str, company: Company) -> _Found | None:
    said = _SELF.match(text) or _SELF_AND.match(text)
    return (company.me, text[said.end() :], False) if said else None


def _theirs(text: str, company: Company) -> _Found | None:
    for mention in company.mentions(text[:120]):
        if mention.start == 0:
            return mention.person, text[mention.end :].lstrip(" ,)"), False
    return None


def _left_out(text: str, company: Company) -> _Found | None:
    said = filled_in(text)
    return (company.me, said, False) if said else None


def _known(text: str, company: Company) -> _Found | None:
    pronoun = _PRONOUN.match(text)
    if pronoun is not None:
        person = company.they(pronoun["who"])
        if person is None:
            return None
        absent = person.thing.name in ABSENT
        unknown = not (person.role or absent) and company.named(person.thing.name) is None
        return person, text[pronoun.end() :], unknown
    named = _NAMED.match(text)
    if named is None or re.split(r"[\s'’]", named["name"])[0] in NOT_NAMES:
        return None
    name = named["name"]
    if role_in(name) is not None:
        return None
    known = company.named(name)
    if known is not None:
        return known, text[named.end() :], False
    stranger = Person(Thing(name, "person"), name)
    return stranger, text[named.end() :], True

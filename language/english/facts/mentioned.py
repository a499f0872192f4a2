"""Whom or what the words of a mention name: "my sister Ana", "Nina from the choir", "the boat"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from language.english.facts.people import RELATIONS, Company, Person
from language.english.facts.personal_names import NAME, may_be_name
from language.english.facts.phrasing import third
from language.english.facts.rules import bare
from language.english.facts.subjects import subject_of
from language.facts import Thing

_ME = re.compile(r"(?:i|me|we|us|myself|ourselves|both of us|we both)\Z", re.IGNORECASE)
THEY = re.compile(r"(?P<who>s?he|him|her|hers|his|they|them|their)\Z", re.IGNORECASE)
_FEMININE = frozenset({"she", "her", "hers"})
IT = re.compile(r"(?:it|its|that|this|these|those|one|which)\Z", re.IGNORECASE)
_FROM = re.compile(rf"(?P<name>{NAME}) (?:from|at|in|next|upstairs|downstairs|across|down)\b.*")
_NAME_LAST = re.compile(
    rf"(?P<whose>[Mm]y|[Oo]ur|[Tt]he) (?P<what>[a-z][\w' -]*?),? \(?(?P<name>{NAME})\)?"
)
_NAMED = re.compile(NAME)
_OWN = re.compile(r"(?:my|our)\s+", re.IGNORECASE)
# The heads of words for several.
_SEVERAL = re.compile(
    r"\b(?:kids|children|parents|boys|girls|twins|in-laws|people|folks|grandparents"
    r"|\w+[^su'](?:s|'s)? and \w+|\w+[^suai']s)\Z",
    re.IGNORECASE,
)
_SOMEBODY = re.compile(
    r"\b(?:"
    + "|".join(map(re.escape, RELATIONS))
    + r"|mum|kid|son|wife|husband|girl|boy|man|woman|guy|lady|intern|boss|landlord|landlady|folks"
    r"|kids|children|parents|boys|girls|twins|in-laws|grandson|granddaughter|goddaughter|godson)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class About:
    """
    Attributes:
        label: What it is called in a sentence: "Ana, User's sister,".
        several: It takes a verb in the plural.
        person: Set where it is somebody.
        what: What a thing of one's own is called by itself: "standing desk".
    """

    thing: Thing
    label: str
    several: bool = False
    person: Person | None = None
    what: str = ""

    @property
    def of(self) -> str:
        return f"{self.label.rstrip(',')}'s"


def somebody(person: Person) -> About:
    several = not person.named and _SEVERAL.search(person.thing.name) is not None
    return About(person.thing, person.label, several, person)


def about(mention: str, company: Company) -> About | None:
    """None where it is not known who or what is meant."""
    said = " ".join(mention.strip(" ,.;:!?()\"'").split())
    said = re.sub(r"(?<=\w)['’]s\Z", "", said)
    if not said or IT.match(said):
        return None
    if _ME.match(said):
        return somebody(company.me)
    person = _person(said, company)
    if person is None:
        return None if THEY.match(said) else _thing(said, company)
    if person is not company.me:
        company.last = person
    return somebody(person)


def _person(said: str, company: Company) -> Person | None:
    if (pronoun := THEY.match(said)) is not None:
        who = pronoun["who"].lower()
        return company.they("she" if who in _FEMININE else "he") or company.they("she")
    known = [mention for mention in company.mentions(said) if mention.start == 0]
    if known:
        return known[0].person
    if (apart := _NAME_LAST.fullmatch(said)) is not None and may_be_name(apart["name"]):
        mine = f"{company.me.thing.name}'s {apart['what']}"
        return company.keep(Person(Thing(apart["name"], "person"), f"{apart['name']}, {mine},"))
    if (found := subject_of(f"{said} is", company)) is not None and found.rest.strip() == "is":
        return found.person
    return _by_name(said, company)


def _by_name(said: str, company: Company) -> Person | None:
    """ "Marguerite next door"; Nina from the choir keeps her whole name, as there may be others."""
    if (found := _FROM.fullmatch(said)) is not None and may_be_name(found["name"]):
        whole = f"{said} " if " from " in said else found["name"]
        return Person(Thing(whole.strip(), "person"), whole.strip())
    if _NAMED.fullmatch(said) and may_be_name(said):
        return company.named(said) or Person(Thing(said, "person"), said)
    return None


def _thing(said: str, company: Company) -> About:
    """ "My standing desk", "our kids": the speaker's, whatever it is."""
    what = third(bare(_OWN.sub("", said)))
    several = _SEVERAL.search(what) is not None
    if what[:1].isupper():
        return About(Thing(what, "item"), what, several, what=what)
    name = f"{company.me.thing.name}'s {what}"
    if _SOMEBODY.search(what) is None:
        return About(Thing(name, "item"), name, several, what=what)
    return About(Thing(name, "person"), name, several, Person(Thing(name, "person"), name))

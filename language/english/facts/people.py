"""Who a clause is about: the speaker, people and animals around them, and who "she" is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from language.english import text_of, words
from language.english.facts.vocabulary import (
    NOT_NAMES,
    ONE_NAME,
    TITLED,
    may_be_name,
    small_name,
    titled_name,
)
from language.english.grammatical_person import SEVERAL
from language.facts import USER, Thing


@dataclass(frozen=True, slots=True)
class Relation:
    """
    Attributes:
        predicate: What the speaker's side of it is called: has_sibling.
        animal: It is a pet, which has no job.
    """

    predicate: str
    animal: bool = False
    feminine: bool | None = None


def _relations() -> dict[str, Relation]:
    table: dict[str, Relation] = {}
    # What the speaker's side of it is called, then he, she, either.
    for line in text_of("kin").splitlines():
        predicate, masculine, feminine, either = line.split("|")
        table |= dict.fromkeys(masculine.split(), Relation(predicate, feminine=False))
        table |= dict.fromkeys(feminine.split(), Relation(predicate, feminine=True))
        table |= dict.fromkeys(either.split(), Relation(predicate))
    return table | dict.fromkeys(sorted(words("pets")), Relation("has_pet", animal=True))


RELATIONS = _relations()


def thing_of(name: str, role: str) -> Thing:
    """Somebody by what they are to the speaker: a pet or a person."""
    relation = RELATIONS.get(role)
    return Thing(name, "pet" if relation is not None and relation.animal else "person")


_AS_THEY_ARE = (
    "brother sister sibling son daughter kid parent dog cat friend cousin nephew niece pet rabbit"
    " horse parrot goat uncle aunt hamster kitten turtle budgie colleague toddler grandson"
)
PLURALS = {f"{role}s": role for role in (*_AS_THEY_ARE.split(), *sorted(words("pets")))} | {
    "children": "child", "twins": "child", "boys": "son", "girls": "daughter",
    "puppies": "puppy", "chickens": "pet", "hens": "pet", "guinea pigs": "pet",
    "baby girl": "daughter", "baby boy": "son",
}  # fmt: skip
_OF_EITHER = {"has_sibling": "sibling", "has_child": "child kid", "has_parent": "parent"}
_LETTERS = re.compile(r"[\w-]+")
_KIN = frozenset({*RELATIONS, *PLURALS, *(role.capitalize() for role in RELATIONS)})
_ROLES = "|".join(sorted(map(re.escape, RELATIONS), key=len, reverse=True))
_ADJECTIVES = (
    r"(?:(?:younger|older|elder|little|big|baby|twin|youngest|oldest|eldest|middle|late|best|good"
    r"|close|old|dear|new|ex|beloved|first|second|third|other|only|great|golden|black|white|grey"
    r"|gray|rescue|guinea|German|pet|line|direct|former|long-term|step|half|work|piano|adopted"
    r"|foster|school|childhood|oldest|lovely|dear|sweet|\d+[- ]year[- ]old|\d+[- ]month[- ]old"
    r"|\w+-year-old)\s){0,3}"
)
_OF_MINE = re.compile(
    rf"(?P<whose>[Mm]y|[Oo]ur|User's|[Tt]he)\s+{_ADJECTIVES}(?P<role>{_ROLES})(?P<own>'s)?"
    rf"(?![\w'-])(?:\s+(?:is\s)?(?:named|called)\s+(?P<called>{ONE_NAME})"
    rf"|,?\s+\(?(?P<name>{ONE_NAME}(?:\s[A-Z][a-z]\w+)?)\)?|\s+(?P<low>[a-z]{{3,12}})(?P<then>(?=\s"
    rf"(?:is|has|was|lives|works|moved|got|and I)\b))?\b)?"
)
_IN_PLACE = re.compile(
    r"\s+in (?P<place>[A-Z][\w-]+(?: [A-Z][\w-]+)?)"
    r"(?=\s(?:is|has|was|works|says?|said|got|had|who)\b)"
)
# "My other sister" is not the one who was named.
_WHICH = re.compile(r"\b(?:other|second|third|half|step|late|former|first)\b")
_FORMER = re.compile(r"\b(?:former|old|ex|previous)\s+(?:boss|manager|supervisor|colleague)\b")
# Of these even a name in small letters is told from what else may follow: "my bf kenji is".
_CLOSE = frozenset(
    "brother sister son daughter husband wife boyfriend girlfriend bf gf fiance fiancee cousin"
    " uncle aunt nephew niece".split()
)
_NO_LOWER_NAME = frozenset(
    "has had have was were got will would also just now still really never always who that which"
    " usually often currently already recently actually and but only even both since then said"
    " sometimes finally school company place job car house birthday wedding phone family".split()
)
_NAMED_FIRST = re.compile(
    rf"(?P<name>{ONE_NAME})(?P<comma>,)? (?:my|our) {_ADJECTIVES}(?P<role>{_ROLES})\b"
    r"(?(comma),?|(?= (?:is|was|has|works|lives|goes|moved|got|just)\b))"
)
_BARE_KIN = re.compile(
    r"(?<![\w'] )\b(?P<role>[Mm]um|[Mm]om|[Dd]ad|[Gg]randma|[Gg]randpa|[Gg]ranny"
    r"|[Gg]randad(?! \w+ (?:has|is|was|had|got|does)\b)|Mother|Father)\b(?!'|-)"
)
_SEVERAL = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur) {_ADJECTIVES}(?P<roles>{'|'.join(PLURALS)})(?:,| are| are called"
    rf"| are named|:)? (?P<names>{ONE_NAME}(?:, {ONE_NAME})*,? and {ONE_NAME})"
)
_SPOKEN_OF = re.compile(
    rf"\b(?:about|with|(?:talk|spoke|speak|said|wrote|married|engaged)(?:ing|ed)? to|met|invited)"
    rf" (?P<name>{ONE_NAME})\b(?!'|-)"
)
_FRIEND_OF_MINE = re.compile(
    r"(?:[Aa]|[Oo]ne of my) (?P<role>friend|mate|buddy|pal|colleague|cousin)s? of mine\b"
    rf"(?:,? (?:called |named )?(?P<name>{ONE_NAME})(?=,| is\b| has\b| who\b),?)?"
)
# "The missus" is mine, wherever it is said; "the wife" may be of a novel.
_THE_ONE = frozenset({"missus", "hubby"})


@dataclass(frozen=True, slots=True)
class Person:
    """Someone statements are about.

    Attributes:
        label: What they are called in a sentence: "Anna, User's sister,".
        role: What they are to the speaker: "sister"; empty for the speaker, and for others.
        owner: To whom else they are that: of a sister's dog the sister; None: to the speaker.
    """

    thing: Thing
    label: str
    role: str = ""
    named: bool = True
    owner: Person | None = None

    @property
    def relation(self) -> Relation | None:
        return RELATIONS.get(self.role)

    @property
    def animal(self) -> bool:
        return self.relation is not None and self.relation.animal


# A message that begins with one of these tells of somebody whom an earlier call has named.
ABSENT = ("She", "He")


@dataclass(frozen=True, slots=True)
class Mention:
    """Somebody around the speaker who is named at `start` to `end` of a text.

    Attributes:
        place: Where they are, if the same words say so: "my aunt in Leeds".
    """

    person: Person
    start: int
    end: int
    place: str = ""


class Company:
    """The speaker of a message and whom the conversation has told of so far."""

    def __init__(self) -> None:
        self.by_name: dict[str, Person] = {}
        self.by_role: dict[str, Person] = {}
        self.me = speaker("")
        self.topic = ""
        self.opening = False
        self._last: Person | None = None
        self._last_in = self._message = 0
        self._sentence = self._sentence_before = ""
        self._others = self._in_passing = False

    @property
    def last(self) -> Person | None:
        """Who was spoken of last."""
        return self._last

    @last.setter
    def last(self, person: Person | None) -> None:
        self._last, self._last_in = person, self._message
        self._others = self._in_passing = False

    @property
    def speaks_of_another(self) -> bool:
        """Whether this message has named somebody else already."""
        named = self._last is not None and self._last_in == self._message
        return named or _OF_ANOTHER.match(self._sentence_before) is not None

    def begin_message(self, at: int) -> None:
        self._message = at
        self._sentence = self._sentence_before = ""

    def turn_to(self, name: str) -> None:
        """Somebody else speaks; "my sister" is theirs from now on."""
        if (me := speaker(name)) != self.me:
            self.by_role.clear()
            self.me = me
            self.last = None
        self.topic = ""

    def hear(self, text: str) -> None:
        """Remember whom a sentence names, in case the next calls them "she"."""
        self._sentence_before, self._sentence = self._sentence, text
        if self._last is not None and _names_others(self._sentence_before, self._last):
            self._others = True
        named = _SPOKEN_OF.search(text)
        if named is not None and named["name"] not in NOT_NAMES and self.last is None:
            name = named["name"]
            self.last = Person(Thing(name, "person"), name)
        elif self._last is None or self._last_in < self._message:
            self._name_lone(text)

    def _just_named(self, person: Person) -> bool:
        """Whether this sentence or the one before names them; small letters do."""
        return person.thing.name.lower() in f"{self._sentence_before} {self._sentence}".lower()

    def _name_lone(self, text: str) -> None:
        """Take the only one whom a sentence names for the next "she"."""
        names = {
            titled
            for found in TITLED.finditer(text)
            if found["title"].lower() != "dr" and (titled := titled_name(found))
        }
        names |= {
            found[0]
            for found in _LONE_NAME.finditer(text)
            if found[0] in self.by_name or found[0].lower() in words("first_names")
        }
        if len(names) == 1:
            name = names.pop()
            self.last = self.by_name.get(name) or Person(Thing(name, "person"), name)
            self._in_passing = True

    def mentions(self, text: str) -> list[Mention]:
        """Whom the speaker calls theirs, in order; knowing them from now on."""
        if _KIN.isdisjoint(_LETTERS.findall(text)):
            return []
        found = [
            Mention(self._meet(match["role"], match["name"]), *match.span())
            for match in _NAMED_FIRST.finditer(text)
            if may_be_name(match["name"])
        ]
        found += [
            self._mine(match, text)
            for match in _OF_MINE.finditer(text)
            if (match["whose"] not in ("The", "the") or match["role"] in {*self.by_role, *_THE_ONE})
            # "My kids Ana and Bea" are several, each by name.
            and not (match["role"] in SEVERAL and (match["called"] or match["name"]))
        ]
        for match in _SEVERAL.finditer(text):
            role = PLURALS[match["roles"]]
            found += [
                Mention(self._meet(role, name), match.start(), match.end())
                for name in re.findall(ONE_NAME, match["names"])
                if name not in NOT_NAMES
            ]
        found += [
            Mention(self._meet(match["role"].lower(), match.groupdict().get("name")), *match.span())
            for pattern, where in ((_BARE_KIN, text[:80]), (_FRIEND_OF_MINE, text))
            for match in pattern.finditer(where)
        ]
        return sorted(found, key=lambda mention: mention.start)

    def _mine(self, match: re.Match[str], text: str) -> Mention:
        """ "My sister Anna"; what follows may also be no name: "my sister Really likes"."""
        name, end = match["called"] or match["name"], match.end()
        close = match["role"] in _CLOSE and match["low"] not in _NO_LOWER_NAME
        if match["low"] and close and (match["then"] is not None or small_name(match["low"])):
            name = match["low"].capitalize()
        elif match["low"]:
            end = match.end("role")
        if match["own"]:
            name, end = None, match.end("own")
        elif _FORMER.search(match[0]):
            name = None
        if name and (name.split()[0] in NOT_NAMES or text[match.end() :].startswith("'")):
            name, end = None, match.end("role")
        person = self._meet(match["role"], name)
        if name is None and (which := _WHICH.search(match[0])) is not None:
            other = f"{self.me.thing.name}'s {which[0]} {match['role']}"
            person = Person(thing_of(other, match["role"]), other, match["role"], named=False)
        place = _IN_PLACE.match(text, end) if lives_apart(match["role"]) else None
        if place is None or not may_be_name(place["place"]):
            return Mention(person, match.start(), end)
        return Mention(person, match.start(), place.end(), place["place"])

    def _meet(self, role: str, name: str | None) -> Person:
        mine = f"{self.me.thing.name}'s {role}"
        if name is None:
            return self.by_role.get(role) or self.keep(
                Person(thing_of(mine, role), mine, role, named=False)
            )
        return self.keep(Person(thing_of(name, role), f"{name}, {mine},", role))

    def keep(self, person: Person) -> Person:
        if person.named:
            self.by_name[person.thing.name] = person
        if person.role:
            self.by_role[person.role] = person
        return person

    def named(self, name: str) -> Person | None:
        return self.by_name.get(name)

    def they(self, pronoun: str) -> Person | None:
        """Whom "she" stands for: who was spoken of last, unless that is a man.

        Nobody if others were named too, or if it was some messages ago: a fact that is put down to
        the wrong person costs more than a lost one.
        """
        person = self.last
        long_ago = 0 if self._in_passing else _LONG_AGO
        if person is not None and (self._others or self._message - self._last_in > long_ago):
            return None
        if person is not None and self._in_passing and not self._just_named(person):
            return None
        if person is None and self.opening:
            she = pronoun.lower() in ("she", "her")
            name = ABSENT[0] if she else ABSENT[1]
            return None if pronoun.lower() == "its" else Person(Thing(name, "person"), name)
        if person is None or person is self.me:
            return None
        feminine = person.relation.feminine if person.relation else None
        if feminine is not None and feminine != (pronoun.lower() in ("she", "her")):
            return None
        return person


_OF_ANOTHER = re.compile(r"(?i)(?:and |so |but )?(?:s?he|they|s?hes|they'?re)\b")
# After so many messages, the assistant's included, "she" is somebody else.
_LONG_AGO = 2
_OTHER_NAME = re.compile(
    r"(?<![.!?:])(?<!\b[Ii]n)(?<!\b[Aa]t)(?<!\bto)(?<!\b[Ff]rom)(?<!\bof)(?<!\b[Ff]or)(?<!\bon)"
    r"(?<!\bthe)(?<!near)(?<!\bis)(?<!\ba)(?<!\bcalled)(?<!\bnamed)[ (](?P<name>[A-Z][a-z][\w-]+)"
)
_OTHER_KIN = re.compile(
    rf"\b(?:her|his|their|the) (?:[a-z]+ )?(?P<role>{_ROLES}|woman|man|lady|guy)\b"
)


def _names_others(text: str, person: Person) -> bool:
    """Whether a sentence names somebody else who might be meant; "in" marks places."""
    names = {found["name"] for found in _OTHER_NAME.finditer(text)}
    others = {name for name in names if name not in person.thing.name and may_be_name(name)}
    kin = {found["role"] for found in _OTHER_KIN.finditer(text)} - {person.role}
    return bool(others) or any(_could_be(role, person) for role in kin)


def _could_be(role: str, person: Person) -> bool:
    """Whether "she" may be either; "her husband" is not taken for his wife."""
    other = RELATIONS.get(role)
    if other is None:
        return True
    sexes = {other.feminine, person.relation.feminine if person.relation else None}
    return not other.animal and sexes != {True, False}


_LONE_NAME = re.compile(rf"(?<![\w'-]){ONE_NAME}(?!'|-)")


def lives_apart(role: str) -> bool:
    """Whether "in Leeds" says where somebody lives: not of a colleague, nor of one's own home."""
    relation = RELATIONS.get(role)
    if relation is None or relation.animal:
        return False
    return relation.predicate.startswith("has_") or relation.predicate == "friend_of"


def speaker(name: str) -> Person:
    thing = Thing(name or USER, "person")
    return Person(thing, thing.name)


def may_be_one_of(several: str, role: str) -> bool:
    """Whether a sister is one of "two sisters", or of "three siblings"."""
    relation = RELATIONS.get(role)
    either = _OF_EITHER.get(relation.predicate, "") if relation else ""
    named = {one for word in several.lower().split() if (one := PLURALS.get(word))}
    return not named.isdisjoint({role, *either.split()})

"""What something of one's own is said to be: a name, a birthday, a rent, a favourite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from language.english import one_of, words
from language.english.facts.patterns_identity import is_name
from language.english.facts.people import ABSENT, RELATIONS, Company, Person, thing_of
from language.english.facts.rules import bare, phrase_of, read_ahead
from language.english.facts.verbs import without_fillers
from language.english.facts.vocabulary import FIGURE, MONTH, NAME, may_be_name, role_in
from language.english.grammatical_person import article, third
from language.facts import Candidate, FactType, Thing, Words

THE_DAY = re.compile(
    rf"(?i)(?P<value>(?:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{MONTH}\b(?:,? \d{{4}})?"
    rf"|{MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?|\d{{4}}-\d\d-\d\d"
    r"|\d{1,2}[/.]\d{1,2}(?:[/.]\d{2,4})?)"
)
_APPOINTMENT = re.compile(
    r"(?i)(?:[\w' -]+ )?(?:exams?|test|interview|flight|wedding|appointment|surgery"
    r"|operation|deadline|due date|trip|holiday|vacation|concert|recital|defen[cs]e"
    r"|graduation|conference|marathon|race|move|anniversary|party|performance review"
    r"|presentation|viva|audition|tournament|start date|first day|course)\Z"
)
# What ends with one of these: "10k pb", "chess rating".
_MEASURED = re.compile(
    r"(?:[\w-]+ ){0,3}(?:pb|pr|(?:personal|season|marathon|half|5k|10k|parkrun) best|record|streak"
    r"|score|rating|elo|handicap|pace|mileage|waist|blood pressure|cholesterol|hba1c|heart rate"
    r"|pulse|ferritin|bench(?: press)?|squat|deadlift|max|wage|pension|hourly rate|day rate|fee"
    r"|savings|(?:savings|step|daily|weekly) goal|debt|loan|bill|grade|gpa|size|weight|rent|salary"
    r"|income|budget|height|mortgage|bmi|commute)"
)
_THINGS = re.compile(rf"(?:(?!(?:dream|next|old|ex)\b)[a-z]+ )?(?:{one_of('possessions')})")
# "Piano arrived today".
_ARRIVED = re.compile(
    rf"(?i)(?:(?:my|our|the) )?(?:new )?(?P<what>{_THINGS.pattern}) (?:has |have )?"
    r"(?:(?:finally|just) )*(?:arrived|(?:was|got|is) delivered)"
    r"(?=\Z|,| (?:today|yesterday|this morning|last)\b)"
)
_VEHICLES = frozenset("car bike van boat motorbike motorcycle".split())


@dataclass(frozen=True, slots=True)
class Belonging:
    """Somebody's `what` is `value`: their "favourite colour" is "teal"."""

    owner: Person
    what: str
    value: str
    words: Words
    said_at: datetime
    company: Company

    @property
    def of(self) -> str:
        return f"{self.owner.label.rstrip(',')}'s"

    @property
    def phrase(self) -> str:
        """What it is said to be, as a phrase; empty if it is none."""
        return phrase_of(self.value) or ""


# "My name is mud".
_FIGURES_OF_SPEECH = frozenset({"mud", "legion", "dirt"})
# Before the thing whose other name follows.
RENAMED = "name of the "

# "£950 in Cardiff", "780 a month plus bills": where, and what else, is no part of it.
_AMOUNT = re.compile(
    rf"(?i)\A(?:(?:about|around|roughly) )?[€$£]? ?{FIGURE}(?:[.,]\d+)*"
    r"(?: (?:a|per|an) (?:month|week|year|hour))?(?=,| (?:in|here|at|plus|and|now|with|for)\b|\Z)"
)
_Read = Callable[[Belonging], Iterator[Candidate]]


def belongings_of(
    what: str, value: str, owner: Person, words: Words, said_at: datetime, company: Company
) -> Iterator[Candidate]:
    """What it says, if it is something worth knowing."""
    what = re.sub(r"\A(?:current|own|new|first|full|last|preferred) ", "", what)
    belonging = Belonging(owner, what, value, words, said_at, company)
    for pattern, read in _READINGS:
        if pattern.fullmatch(what):
            yield from read(belonging)
            return


def arrived_in(text: str, me: Person, words: Words) -> Iterator[Candidate]:
    if ("arriv" in text or "deliver" in text) and (arrived := _ARRIVED.match(text)):
        what = arrived["what"]
        yield fact_of(me, "owns", what, f"{me.label} owns {article(what)}", words)


def favourite_of(owner: Person, what: str, value: str, words: Words) -> Candidate:
    what = re.sub(r"s\Z", "", what.lower()) if not what.endswith("ss") else what.lower()
    return Candidate(
        type="preference",
        subject=owner.thing,
        predicate="favourite",
        object=third(value),
        text=f"{owner.label.rstrip(',')}'s favourite {what} is {third(value)}",
        words=(words,),
        aspect=what,
        stance="positive",
        confidence=0.85,
    )


def fact_of(
    owner: Person,
    predicate: str,
    obj: str,
    text: str,
    words: Words,
    *,
    kind: str = "",
    corrected: bool = False,
    type: FactType = "fact",
    valid_from: datetime | None = None,
) -> Candidate:
    return Candidate(
        type,
        owner.thing,
        predicate,
        obj,
        text,
        (words,),
        thing=Thing(obj, kind) if kind else None,
        corrects=corrected,
        confidence=0.85,
        valid_from=valid_from,
    )


def _favourite(one: Belonging) -> Iterator[Candidate]:
    what = one.what.split(" ", 1)[1]
    if len(what.split()) > 2 or re.search(r"\b(?:one|part|thing)\b", what):
        return
    said = phrase_of(without_fillers(one.value))
    if said and not said.startswith(("when", "how", "to see")):
        shown = bare(said) if said.startswith("the ") else said
        yield favourite_of(one.owner, what, shown, one.words)


def _named(one: Belonging) -> Iterator[Candidate]:
    found = re.match(r"(?:spelt |spelled )?(?P<name>[\w'-]+(?: [A-Z][\w'-]+){0,2})", one.value)
    if found is None or one.owner.thing.name in ABSENT:
        return
    name = found["name"]
    if name.lower() not in _FIGURES_OF_SPEECH and is_name(name.title() if name.islower() else name):
        yield from name_of(one.owner, name, one.words, one.company)


def _day_of_year(one: Belonging) -> Iterator[Candidate]:
    what = "anniversary" if one.what.endswith("anniversary") else "birthday"
    if (day := THE_DAY.search(one.value)) is not None:
        text = f"{one.of} {what} is {day['value']}"
        yield fact_of(one.owner, what, day["value"], text, one.words)


_CONTACT = re.compile(
    r"(?:(?:home|work|postal|new) )?(?:address|e-?mail(?: address)?|phone number|postcode"
    r"|zip(?: code)?|number ?plate|licen[cs]e plate|locker(?: number)?|membership number)"
)


def _contact(one: Belonging) -> Iterator[Candidate]:
    """ "My email is ana@example.org": of an address the whole, of the others one word or number."""
    value = one.value.strip(" .!")
    is_place = "address" in one.what and re.match(r"\d+\w? [A-Z]|[A-Z][\w' -]+ \d", value)
    is_number = re.fullmatch(r"[+\w][\w+@.\-]*(?: [\dA-Z][\dA-Z-]*){0,4}", value)
    if is_place or (is_number and re.search(r"[@\d]", value)):
        # Of homes there is one, of other addresses there are several.
        predicate = "home_address" if one.what == "address" else one.what.replace(" ", "_")
        yield fact_of(one.owner, predicate, value, f"{one.of} {one.what} is {value}", one.words)


def _says(predicate: str, says: str, **options: Any) -> _Read:
    """What it is said to be, as it stands."""

    def read(one: Belonging) -> Iterator[Candidate]:
        # "My home town is loud" names none.
        if (said := one.phrase) and not (options.get("kind") == "place" and said.islower()):
            be = "are" if one.what in ("pronouns", "hobbies") else "is"
            text = says.format(who=one.owner.label, of=one.of, what=one.what, be=be, o=said)
            named = predicate or one.what.replace(" ", "_")
            yield fact_of(one.owner, named, said.removeprefix("in "), text, one.words, **options)

    return read


_PROVIDER = re.compile(
    r"bank|insurer|wi-?fi|internet|broadband|electricity|energy|(?:[a-z-]+ )?(?:provider|supplier"
    r"|carrier|operator|insurance)|operating system|editor|browser|(?:[a-z]+ )?os"
)


_LINES = ("wifi", "wi-fi", "broadband")


def _provider(one: Belonging) -> Iterator[Candidate]:
    """ "My internet provider is KPN"."""
    value = without_fillers(one.value)
    if name := re.match(
        r"(?:with |from )?(?P<o>[A-Z][^\s,;]*(?: [A-Z][^\s,;]*)*)(?=\Z|,|;)", value
    ):
        predicate = "internet" if one.what in _LINES else one.what.replace(" ", "_")
        text = f"{one.of} {one.what} is {name['o']}"
        yield fact_of(one.owner, predicate, name["o"], text, one.words)


def _job(one: Belonging) -> Iterator[Candidate]:
    if (place := re.match(r"(?:at|with|for) (?P<o>[A-Z].*)", one.value)) is not None:
        at = phrase_of(place["o"])
        if at:
            text = f"{one.owner.label} works at {at}"
            yield fact_of(one.owner, "works_at", at, text, one.words, kind="organisation")
    elif role := role_in(bare(re.sub(r"\A(?:as|being) ", "", one.value))):
        text = f"{one.owner.label} works as {article(role)}"
        yield fact_of(one.owner, "works_as", role, text, one.words)


def _employer(one: Belonging) -> Iterator[Candidate]:
    return _job(replace(one, value=f"at {one.value}"))


def _lives(one: Belonging) -> Iterator[Candidate]:
    """ "My place is in Nairobi"; where something else is, nobody lives."""
    place = re.match(
        rf"(?:still |just )?(?:in|near|outside) (?P<o>{NAME})(?=\Z|,| and\b)", one.value
    )
    if place is None and one.what.startswith("home"):
        place = re.match(rf"(?P<o>{NAME})(?=\Z|,| and\b)", one.value)
    if place is not None and one.owner is one.company.me:
        text = f"{one.owner.label} lives in {place['o']}"
        yield fact_of(one.owner, "lives_in", place["o"], text, one.words, kind="place")


def _goal(one: Belonging) -> Iterator[Candidate]:
    said = third(phrase_of(one.value.removeprefix("to ")) or "")
    if said and one.value.startswith("to "):
        yield fact_of(one.owner, "wants", said, f"{one.of} {one.what} is to {said}", one.words)


def _measure(one: Belonging) -> Iterator[Candidate]:
    if re.search(r"\d", one.value):
        value = amount[0] if (amount := _AMOUNT.match(one.value)) else one.value
        predicate = one.what.replace("monthly ", "").replace(" ", "_")
        what = re.sub(r"\b(?:pb|pr|gpa|bmi|elo|hba1c)\b", lambda word: word[0].upper(), one.what)
        text = f"{one.of} {what} is {value}"
        yield fact_of(one.owner, predicate, value, text, one.words)


def _appointment(one: Belonging) -> Iterator[Candidate]:
    left, when = read_ahead(_up_to_comma(one.value), one.said_at)
    if when.at is None or when.at.date() < one.said_at.date() or len(left.split()) > 4:
        return
    day = f"{when.at.day} {when.at:%B %Y}"
    text = f"{one.owner.label} has {article(one.what)} on {day}"
    yield fact_of(one.owner, "plans", one.what, text, one.words, valid_from=when.at)


def _up_to_comma(value: str) -> str:
    first = value.split(",")[0]
    return first if re.search(r"\d", first) else value


def _work(one: Belonging) -> Iterator[Candidate]:
    called = re.match(r"(?:called|named) (?P<name>[A-Z]\w+)", one.value)
    about = re.match(r"about (?!to\b|\d)(?P<o>.+)", one.value)
    if about is not None and (topic := phrase_of(about["o"])):
        text = f"{one.of} {one.what} is about {topic}"
        yield fact_of(one.owner, "works_on", f"{one.what} about {topic}", text, one.words)
    if called is not None:
        text = f"{one.of} {one.what} is called {called['name']}"
        yield fact_of(one.owner, "works_on", called["name"], text, one.words, kind="project")


def _owned(one: Belonging) -> Iterator[Candidate]:
    if (called := _CALLED.match(one.value)) is not None:
        yield _called(one, one.what, called["name"])
        return
    said = without_fillers(re.split(r"\b(?:and|but|which|that|so)\b", one.value)[0])
    # "My car is a mess" tells nothing of what it is.
    vague = words("blame") | words("praise") | {"gift", "present", "bit", "lot", "few"}
    told = vague.isdisjoint(said.split()) and (one.what in _VEHICLES or re.search(r"[A-Z\d]", said))
    if told and re.match(r"an? ", one.value) and 1 < len(said.split()) <= 9:
        predicate = "drives" if one.what == "car" else "owns"
        text = f"{one.of} {one.what} is {third(said)}"
        owned = fact_of(one.owner, predicate, bare(said), text, one.words)
        yield replace(owned, aspect=one.what if predicate == "owns" else "")


_CALLED = re.compile(r"(?:called|named) (?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?)\Z")


def _renamed(one: Belonging) -> Iterator[Candidate]:
    """ "It is Albatross now", after "we renamed the boat"."""
    name = re.fullmatch(r"(?:called |named )?([A-Z][\w-]+(?: [A-Z][\w-]+)?)", one.value)
    if name is not None:
        yield _called(one, one.what.removeprefix(RENAMED), name[1])


def _called(one: Belonging, what: str, name: str) -> Candidate:
    thing = Thing(f"{one.of} {what}", "item")
    text = f"{thing.name} is called {name}"
    return Candidate("fact", thing, "name", name, text, (one.words,), confidence=0.85)


_SOMEBODY = re.compile(
    r"(?:called |named )?(?P<name>(?:(?:Dr|Mrs?|Ms|Miss)\.? )?[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)"
    r"(?= now\Z|\Z|, |;| from | over | at )"
)
_HOLDERS = frozenset(
    "predecessor successor landlord landlady doctor gp captain boss super foreman".split()
)


def _office(one: Belonging) -> Iterator[Candidate]:
    """ "My landlady is Mrs Cho": a person who does something for somebody."""
    found = _SOMEBODY.match(one.value)
    holder = one.what.split()[-1]
    if found is None or not (holder in _HOLDERS or role_in(one.what)):
        return
    name = found["name"]
    if may_be_name(name.split()[-1]):
        text = f"{one.of} {one.what} is {name}"
        relation = RELATIONS.get(holder)
        predicate = relation.predicate if relation else one.what.replace(" ", "_")
        yield fact_of(one.owner, predicate, name, text, one.words, kind="person")


_READINGS: tuple[tuple[re.Pattern[str], _Read], ...] = (
    (re.compile(r"favou?rite .+"), _favourite),
    (re.compile(r"name|nickname"), _named),
    (re.compile(f"{RENAMED}.+"), _renamed),
    (re.compile(r"birthday|b-?day|dob|date of birth|(?:wedding )?anniversary"), _day_of_year),
    (re.compile(r"pronouns|nationality|surname|middle name"), _says("", "{of} {what} {be} {o}")),
    (re.compile(r"blood (?:type|group)|star sign|gym|time ?zone"), _says("", "{of} {what} is {o}")),
    (_CONTACT, _contact),
    (_PROVIDER, _provider),
    (re.compile(r"(?:day )?job(?: title)?|profession|occupation|role|position"), _job),
    (re.compile(r"employer"), _employer),
    (re.compile(r"home(?: for me)?|place|flat|apartment|house|studio|room"), _lives),
    (
        re.compile(r"native language|mother tongue|first language"),
        _says("speaks", "{of} {what} is {o}"),
    ),
    (re.compile(r"degree|major"), _says("studies", "{of} {what} is {o}")),
    (re.compile(r"home ?town"), _says("from", "{who} is from {o}", kind="place")),
    (
        re.compile(r"hobby|hobbies|passion"),
        _says("likes", "{of} {what} {be} {o}", type="preference"),
    ),
    (re.compile(r"goal|dream|plan|ambition"), _goal),
    (_MEASURED, _measure),
    (re.compile(one_of("works")), _work),
    (_THINGS, _owned),
    (_APPOINTMENT, _appointment),
    (re.compile(r"[a-z]+(?: [a-z]+)?"), _office),
)


def name_of(one: Person, name: str, words: Words, company: Company) -> Iterator[Candidate]:
    """What somebody, or somebody's relation, is called."""
    if one.relation is None:
        yield fact_of(one, "name", name, f"{one.label}'s name is {name}", words)
        return
    owner = one.owner or company.me
    of = f"{owner.label.rstrip(',')}'s {one.role}"
    thing = thing_of(name, one.role)
    company.last = company.keep(Person(thing, f"{name}, {of},", one.role, owner=one.owner))
    yield Candidate(
        "fact",
        owner.thing,
        one.relation.predicate,
        name,
        f"{of} is named {name}",
        (words,),
        thing=thing,
        confidence=0.85,
        tags=(one.role,),
    )

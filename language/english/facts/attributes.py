"""What is said of something of one's own: "my favourite colour is teal".

Of people and animals around the speaker, and what became of them: `family`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from language.english.facts.patterns_identity import is_name
from language.english.facts.people import RELATIONS, Company, Person, thing_of
from language.english.facts.possessions import (
    RENAMED,
    THE_DAY,
    arrived_in,
    belongings_of,
    fact_of,
    favourite_of,
    name_of,
)
from language.english.facts.rules import phrase_of
from language.english.facts.subjects import corrects, without_openers
from language.english.facts.verbs import without_fillers
from language.english.facts.vocabulary import (
    MONTH,
    NAME,
    is_first_name,
    may_be_name,
    role_in,
    small_name,
)
from language.english.grammatical_person import article
from language.facts import Candidate, Thing, Words

_WHOSE = (
    r"(?:(?:my |our |the )?(?P<whose>[\w-]+)'s|my|our|(?P<theirs>his|her|its)"
    r"|(?=(?:b-?day|dob|home|home for me|(?:new )?favou?rite [a-z]+) (?:is|are) |rent here ))"
)
_AFTER = re.compile(r"(?i)\A(?:since|after|as of|from) (?:the |my |our )?\w+,? (?=(?:my|our) )")
_ATTRIBUTE = re.compile(
    rf"(?i)\A{_WHOSE} ?(?P<what>[\w' -]{{2,40}}?)(?: here)? (?P<verb>is|are|was|used to be|will be"
    rf"|has always been)"
    r"(?: (?:now|currently|actually|still|also|definitely|probably the|by far))* (?P<value>\S.*)\Z"
)
_MY_FAVOURITE = re.compile(
    r"(?i)\A(?P<value>\S.{1,60}?) (?P<verb>is|are|was|used to be) (?:definitely |still |also "
    r"|by far |probably )?(?:my|one of my) (?:all-time |absolute "
    r"|personal )?favou?rite (?P<what>[\w -]{2,30})(?=\Z|,)"
)
_LISTED_FAVOURITE = re.compile(
    r"(?i)\A(?:my )?(?:new )?favou?rite (?P<what>\w+(?: \w+)?): (?P<value>.+)\Z"
)
_CALLED = re.compile(
    r"\A(?:[Pp]lease |[Jj]ust |[Yy]ou can |[Ff]eel free to )*(?:[Cc]all me|(?:address|Address) me"
    r" as|(?:everyone|everybody|people|friends|my friends)(?: here| at work)? (?:calls? me|says)"
    r"|I go by|I"
    r" am called|(?P<here>[Tt]his is|(?:[Tt]he|full|my full) name is)) (?P<value>(?:(?:Dr|Mrs?|Ms"
    r"|Professor)\.? )?[A-Z][\w'-]+|[a-z]{2,12})(?=\Z|,|\.| (?:with|among|at) | instead| here"
    r"| but\b| btw\b| from (?:the )?[a-z])"
)
_HERE = re.compile(r"\A(?P<value>[A-Z][\w-]+)(?P<here> here)(?=\Z|,)")
_IS_MINE = re.compile(
    r"\A(?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?) is (?P<no>not |no longer )?(?:my|our) (?:[a-z]+ )?"
    rf"(?P<role>{'|'.join(RELATIONS)})(?=\Z|,|\.| (?:since|now|any more)\b)"
)
_PETS = "|".join(name for name, relation in RELATIONS.items() if relation.animal)
_THE_PET = re.compile(
    rf"\A(?:[Tt]he (?:new |old )?(?P<pet>{_PETS}) is (?:called|named)"
    rf"|(?:I|[Ww]e) (?:have |ended up )?(?:named|called|naming|calling) (?:the|our|my) (?:new )?"
    rf"(?P<one>{_PETS})) (?P<name>[A-Z][\w-]+)\b(?! (?:in|from) (?:the|an?|my|our|this|that)\b)"
)
_APPOSED = re.compile(
    rf"(?<![\w'-])(?P<name>{NAME}), (?:my|our|the|an?) (?P<role>[a-z][\w' -]{{2,40}})"
    r"(?=\Z|[,.;:]| who\b| at | from )"
)
# "Boss is Devon", without a "my".
_HOLDER_IS = re.compile(
    r"\A(?i:the )?(?=(?i:boss|captain|landlord|landlady|manager|supervisor|super|foreman)"
    r" is (?:now )?[A-Z])"
)
_BEST = re.compile(r"(?i)\Athe best (book|film|movie|show|album|game) I have ever \w+ (?=is )")
_SPELT = re.compile(
    r"\A(?:(?:she|he|they|it is|I) )?(?:spells? (?:it|(?:her|his|my) name)"
    r"|(?:is )?spelt|(?:is )?spelled) (?P<value>[A-Z][\w'-]+)"
)
_INTRODUCTION = re.compile(
    r"\A(?:I am|my name is|this is) (?P<name>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)(?:,?"
    r" (?:and I am )?(?P<age>\d{2})(?! ?[-\w]))?"
    r"(?:,? (?:and I am |and )?an? (?:(?P<years>\d{2})[- ]year[- ]old )?(?P<rest>\w.*))?\Z"
)
_TOPIC = re.compile(
    r"(?i)\b(?P<what>favou?rite \w+|rent|salary|height|weight|budget|(?:doctor|dentist"
    r"|therapist|landlord|manager|gym|bank)(?=s?\b))"
)
_HAS_CHANGED = re.compile(
    r"\b(?:changed?|went|switched|raised|rose|up|down|no longer|any more|wrong|new)\b"
)
_RENAMED = re.compile(
    r"\b[Rr]e(?:named|christened|baptised|baptized) (?:the|my|our) (?P<what>[a-z][\w-]+)"
    r"(?:\Z|(?: to| as)? (?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?)(?=\Z|,))"
)
_IT_IS = re.compile(
    r"(?i)\A(?:it|that|she) (?:is|will be) (?:now )?(?P<value>\S.*?)(?: from now on)?\Z"
)
# "New 10k PB: 48:31".
_NEW_VALUE = re.compile(
    r"(?i)\A(?:an? |my )?new (?P<what>[\w' -]{2,30}?)(?::| is| of|,) (?P<value>[€$£]?\d\S*.*)\Z"
)
_BORN_IN = re.compile(rf"\bborn (?:on .*? )?in (?P<o>(?!{MONTH}\b){NAME})")
_YEAR = re.compile(r"(?:19\d\d|20[01]\d)\b(?!s)")
# "The car is a diesel", "our flat has three rooms": closed kinds, so that "the house is on fire"
# and "the build is green" are none.
_PROPERTY = re.compile(
    r"\A(?:[Mm]y|[Oo]ur|[Tt]he) (?P<what>(?:new |old )?(?:car|van|camper(?:van)?|motorbike|truck"
    r"|boat|house|flat|apartment|place|garden|cabin|cottage|studio|heating|boiler))"
    r" (?:(?:is|runs on|takes) (?:an? |now |all |fully )*(?P<fuel>petrol|diesel|electric|hybrid"
    r"|plug-in hybrid|gas|oil|LPG|a heat pump|pellets)|is (?:an? )?(?P<gearbox>manual|automatic)"
    r"|(?:only |now )?has (?:(?P<rooms>(?:one|two|three|four|five|six|seven|eight|\d+) (?:\w+ )?"
    r"(?:(?:bed|bath)?rooms?|floors|storeys|seats|doors)(?: and an? [\w ]{3,30})?)"
    r"|(?P<features>(?:an?|no) (?:\w+ )?(?:balcony|garden|cellar|basement|garage|attic|loft|terrace"
    r"|pool|sauna|fireplace|conservatory|lift|porch|tow ?bar|heat pump|sunroof|roof rack))))"
    r"(?=\Z|,| (?:car|one|still|too|now|though|since|and|but|so|by the way)\b)"
)
_BIRTHDAY_TODAY = re.compile(
    r"(?i)\A(?:it is my birthday (?P<when>today|tomorrow)|(?P<then>today"
    r"|tomorrow) is my birthday)\b"
)
_BIRTHDAY_ON = re.compile(
    r"(?i)\A(?:it is )?(?:my birthday (?:is )?on|(?P<born>(?:I was |I am )?born(?: on| in)?)"
    r"|my birthday is|(?:I am )?turning \d{1,2} on) (?P<value>.+)\Z"
)


_NAMEABLE = frozenset("boat van car camper campervan bike house cabin cottage band team".split())
_PRONOUNS = re.compile(
    r"(?i)\b(?:I (?:use|go by)|(?:please )?use|refer to me (?:as|with|by)|pronouns:) "
    r"(?P<o>(?:they|she|he|ze|xe|it)/\w+(?:/\w+)?)(?=\Z|,|\.| for me| pronouns| please)"
)


def attributes_of(
    text: str, words: Words, said_at: datetime, company: Company
) -> Iterator[Candidate]:
    text, opening = without_openers(text)
    text = _BEST.sub(r"my favourite \1 ", _HOLDER_IS.sub("my ", _AFTER.sub("", text)))
    yield from _by_themselves(text, words, said_at, company, corrected=corrects(opening))
    if (thing := _PROPERTY.match(text)) is not None:
        yield _property(thing, words, company.me, corrected=corrects(opening))
        return
    found = _ATTRIBUTE.match(text)
    if found is None:
        yield from _its(text, words, said_at, company)
        return
    owner = _owner(found, company)
    if owner is None and found["what"] == "name" and found["whose"] in _NAMEABLE:
        # "The boat's name is Kittiwake".
        what = f"{RENAMED}{found['whose']}"
        value = without_fillers(found["value"])
        yield from belongings_of(what, value, company.me, words, said_at, company)
    if owner is None:
        return
    value = _after_correction(found["value"])
    made = belongings_of(found["what"].lower(), value, owner, words, said_at, company)
    for one in made:
        past = found["verb"].lower() in ("was", "used to be")
        if past and one.predicate in ("did", "plans"):
            continue
        yield replace(
            one,
            corrects=corrects(opening) or value != found["value"],
            valid_to=said_at if past else None,
        )


def _its(text: str, words: Words, said_at: datetime, company: Company) -> Iterator[Candidate]:
    """ "I've changed my favourite colour, it's yellow"."""
    found = _IT_IS.match(text)
    if found is not None and company.topic:
        value = without_fillers(found["value"])
        yield from belongings_of(company.topic.lower(), value, company.me, words, said_at, company)
    elif (new := _NEW_VALUE.match(text)) is not None:
        yield from belongings_of(
            new["what"].lower(), new["value"], company.me, words, said_at, company
        )
    elif renamed := _RENAMED.search(text):
        company.topic = f"{RENAMED}{renamed['what']}"
        if name := renamed["name"]:
            yield from belongings_of(company.topic, name, company.me, words, said_at, company)
    elif _HAS_CHANGED.search(text) and (topic := _TOPIC.search(text)) is not None:
        company.topic = topic["what"]


def _after_correction(value: str) -> str:
    """ "Lisbon, no sorry, Porto" is Porto."""
    return re.split(r",? (?:no,? )?(?:sorry|I mean|I meant|wait),? ", value)[-1]


def _owner(found: re.Match[str], company: Company) -> Person | None:
    if found["theirs"]:
        return company.they(found["theirs"])
    name = found["whose"]
    if not name or name.lower() == "user":
        return company.me
    if name.lower() in RELATIONS:
        return company.mentions(f"my {name.lower()} ")[0].person
    return company.named(name)


def _by_themselves(
    text: str, words: Words, said_at: datetime, company: Company, *, corrected: bool
) -> Iterator[Candidate]:
    me = company.me
    favourite = _MY_FAVOURITE.match(text) or _LISTED_FAVOURITE.match(text)
    if favourite is not None and (value := phrase_of(favourite["value"])):
        found = favourite_of(me, favourite["what"], value, words)
        if favourite.groupdict().get("verb", "").lower() in ("was", "used to be"):
            company.topic = f"favourite {favourite['what']}"
            text = found.text.replace(" is ", " was ", 1)
            found = replace(found, text=text, valid_to=said_at)
        yield found
    called = _CALLED.match(text) or _HERE.match(text)
    # "It is hot. This is Enugu" introduces nobody.
    name = (small_name(called["value"]) or called["value"]) if called else ""
    in_doubt = called and (called["here"] == " here" or text[called.end() :].startswith(" from"))
    known = not in_doubt or is_first_name(name)
    if called and known and is_name(name.split()[-1]) and (company.opening or not called["here"]):
        statement = f"{me.label} wants to be called {name}"
        yield fact_of(me, "name", name, statement, words, corrected=corrected)
    yield from _introduced(text, me, words)
    yield from arrived_in(text, me, words)
    yield from _related(text, words, company)
    yield from _apposed(text, words, company)
    pet = _THE_PET.match(text)
    # Who names it has it, though the name was just taken for somebody who is spoken of.
    names = pet and pet["one"] and company.last and company.last.thing.name == pet["name"]
    if pet and (company.last is None or names):
        statement = f"{me.label} has {article(pet['pet'] or pet['one'])} named {pet['name']}"
        yield fact_of(me, "has_pet", pet["name"], statement, words, kind="pet")
    spelt = _SPELT.match(text)
    if spelt is not None and company.last is not None:
        for one in name_of(company.last, spelt["value"], words, company):
            yield replace(one, corrects=True)
    if "orn" in text or "irth" in text or "urning" in text:
        yield from _born(text, me, words, said_at, corrected=corrected)


def _property(found: re.Match[str], words: Words, me: Person, *, corrected: bool) -> Candidate:
    of = Thing(f"{me.label}'s {found['what']}", "item")
    kind = next(kind for kind in ("fuel", "gearbox", "rooms", "features") if found[kind])
    said = phrase_of(found[kind], to_comma=False) or found[kind]
    says = "is" if kind == "gearbox" else "runs on" if kind == "fuel" else "has"
    text = f"{of.name} {says} {said}"
    return Candidate("fact", of, kind, said, text, (words,), corrects=corrected)


def _born(
    text: str, me: Person, words: Words, said_at: datetime, *, corrected: bool
) -> Iterator[Candidate]:
    """ "I was born in 1988", "it's my birthday today"."""
    today = _BIRTHDAY_TODAY.match(text)
    born = _BIRTHDAY_ON.match(text)
    day = THE_DAY.search(born["value"] if born else text) if born or today else None
    if today is not None and day is None:
        on = said_at + timedelta(days=(today["when"] or today["then"] or "").lower() == "tomorrow")
        said = f"{on.day} {on:%B}"
    elif day is not None:
        said = day["value"]
    elif born and born["born"] and (year := _YEAR.match(born["value"])):
        statement = f"{me.label} was born in {year[0]}"
        yield fact_of(me, "birth_year", year[0], statement, words, corrected=corrected)
        return
    else:
        return
    if born and born["born"] and (place := _BORN_IN.search(text)):
        statement = f"{me.label} was born in {place['o']}"
        yield fact_of(me, "from", place["o"], statement, words, kind="place", corrected=corrected)
    statement = f"{me.label}'s birthday is {said}"
    yield fact_of(me, "birthday", said, statement, words, corrected=corrected)


def _related(text: str, words: Words, company: Company) -> Iterator[Candidate]:
    """ "Vern is my colleague"."""
    found = _IS_MINE.match(text)
    if found is None or not may_be_name(found["name"]) or not is_name(found["name"]):
        return
    if found["no"]:
        predicate = RELATIONS[found["role"]].predicate
        text = f"{company.me.label} no longer has {article(found['role'])} named {found['name']}"
        yield replace(fact_of(company.me, predicate, found["name"], text, words), negated=True)
        return
    named = f"{found['name']}, my {found['role'].lower()},"
    for mention in company.mentions(named):
        role = mention.person.role
        name, predicate = mention.person.thing.name, RELATIONS[role].predicate
        text = f"{company.me.label} has {article(role)} named {name}"
        kind = thing_of(name, role).kind
        one = fact_of(company.me, predicate, name, text, words, kind=kind)
        yield replace(one, tags=(role,))


def _apposed(text: str, words: Words, company: Company) -> Iterator[Candidate]:
    """ "I rang Ruth Adeyemi, our county recorder"."""
    for found in _APPOSED.finditer(text):
        name, role = found["name"], role_in(found["role"])
        if role is None or role.lower() in RELATIONS or not may_be_name(name):
            continue
        who = company.named(name) or Person(Thing(name, "person"), name)
        statement = f"{who.label} works as {article(role)}"
        yield fact_of(who, "works_as", role, statement, words)


def _introduced(text: str, me: Person, words: Words) -> Iterator[Candidate]:
    """ "I'm Gideon, 52, a beekeeper near Graz", "please use they/them for me"."""
    if (pronouns := _PRONOUNS.search(text)) is not None:
        statement = f"{me.label}'s pronouns are {pronouns['o']}"
        yield fact_of(me, "pronouns", pronouns["o"], statement, words)
    found = _INTRODUCTION.match(text)
    if found is None or not is_name(found["name"]) or not (found["age"] or found["rest"]):
        return
    yield fact_of(me, "name", found["name"], f"{me.label}'s name is {found['name']}", words)
    if age := found["age"] or found["years"]:
        yield fact_of(me, "age", age, f"{me.label} is {age} years old", words)
    rest = found["rest"] or ""
    if role := role_in(rest):
        yield fact_of(me, "works_as", role, f"{me.label} works as {article(role)}", words)
    if place := re.search(
        r"\b(?:from|near|living in|based in|in) (?P<o>[A-Z][\w-]+(?: [A-Z][\w-]+)*)", rest
    ):
        yield fact_of(
            me, "lives_in", place["o"], f"{me.label} lives in {place['o']}", words, kind="place"
        )

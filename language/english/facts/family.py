"""Family, friends and animals: who there is, what they are called, who is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from language import english
from language.english.facts.people import PLURALS, RELATIONS, Company, Person, thing_of
from language.english.facts.possessions import name_of
from language.english.facts.rules import Claim, When, read_when
from language.english.facts.verbs import Tense
from language.english.facts.vocabulary import NUMBER_WORD, is_first_name, may_be_name
from language.english.grammatical_person import SEVERAL, article, sentence
from language.facts import USER, Candidate, Thing, Words

_COUNT = (
    r"(?:an?|one|two|three|four|five|six|seven|eight|no|twin|several|some|another|a second"
    r"|a third|a new|\d+)"
)
_KINDS = "|".join(sorted((*RELATIONS, *PLURALS, "guinea pig"), key=len, reverse=True))
# "Theo (7)".
_NAME_AGED = r"(?-i:[A-Z][\w-]+)(?: ?\(\d{1,2}\))?"
_MEMBER = re.compile(
    rf"(?i)\b(?P<count>{_COUNT})\s+(?P<like>(?:(?!(?:and|for|of|to|in|with|from|on|at|about"
    rf"|or)\b)[\w-]+\s){{0,3}}?)(?!twin (?:sister|brother)\b|pet (?:{_KINDS})\b)"
    rf"(?P<kind>{_KINDS})\b(?![\w'-])"
    r"(?P<names>,? (?:\(?(?:named|called"
    rf"|who is called|who is named) )?{_NAME_AGED}(?:(?:, |,? and ){_NAME_AGED})*)?"
)
# "A pet bed" is none: what follows must begin something else.
_ENDS = re.compile(
    r"\Z|\s*[,;.!()]|\s(?:and|with|at|in|on|from|who|that|called|named|last|this|but|so"
    r"|now|to|for|today|yesterday|since|as|too|already|because|living|\d)\b"
)
_WITH_MINE = re.compile(r"(?i)\bwith (?:my|our) (?!late\b|ex\b|former\b)[^,;]*\Z")
_CALLED = re.compile(
    r"(?P<so>(?:an? (?:\w+ ){1,3})?(?:called|named) )?(?P<name>[A-Z]\w+)(?=\Z|,| (?:and|but|or)\b)"
)
_TAKEN_IN = frozenset({"adopt", "get", "welcome", "rescue", "buy", "foster"})
# "Have a partner for the dance" is about the dance.
_NO_FAMILY = re.compile(
    rf"(?i)\A(?:(?:any|an?) )?(?P<kind>brothers or sisters|{_KINDS})(?=\Z|[,;.]| (?:or|and|but|yet"
    rf"|at all)\b)"
)
_OF_A_HOUSEHOLD = frozenset(
    "has_sibling has_child has_parent has_pet married_to engaged_to partner".split()
)
_RAISED = {role for role, of in RELATIONS.items() if of.predicate in ("has_pet", "has_child")}
# "We have twins": of these no number is needed.
_MANY = re.compile(
    rf"(?i)(?:the )?(?P<kind>{'|'.join(many for many, one in PLURALS.items() if one in _RAISED)})"
    r"(?=\Z|,| (?:and|but|so|too)\b)"
)
_BORN = re.compile(
    r"(?:an?|our|my|another) (?:[\w-]+ )*?(?:baby|daughter|son)(?: boy| girl)?(?=\Z| ?,| (?:last"
    r"|this|in|on|yesterday|today|two|three)\b)"
)
# Of "the baby's room" and "a baby name" none is born.
_THE_BABY = re.compile(
    r"(?:the|her|our|my|a) (?:baby|babies|twins)(?: (?:boy|girl)s?)?(?=\Z|\s*[,;.!]| (?:on|in|at"
    r"|by|last|this|yesterday|today|tonight|early|late|two|three|four|five|six|\d+|an?|and"
    r"|now)\b)"
)
_ONE = frozenset({"a", "an", "one", "another", "a second", "a third", "a new"})
_ONLY_ONE = frozenset({"married_to", "engaged_to", "partner", "reports_to"})
_JUST_BORN = re.compile(
    r"born(?=\Z|,| (?:today|yesterday|last (?:night|week)|this (?:morning|week)|at \d"
    r"|on (?:\w+day|the \d+\w+)))"
)
_NAMES = re.compile(r"[A-Z][\w-]+")
_NOT_MINE = re.compile(
    r"(?i)\b(?:bachelor|question|problem|issue|meeting|call|chat|talk|conversation|crush"
    r"|interview|lot|job|in with)\b"
    # Toy poodles are alive.
    r"|\b(?:stuffed|plush|imaginary|robot|knitted|toy(?! (?:poodle|spaniel|terrier)))\b"
)
_AGED = re.compile(r"\s*[,(]\s*(?:aged )?(?P<age>\d{1,2})(?=\)|\Z|,|\.|;| and\b)")
_AGES = re.compile(
    rf"{NUMBER_WORD}(?:, {NUMBER_WORD})* and {NUMBER_WORD}(?=\Z|,| now\b)".replace(
        "?:one", r"?:\d+|one"
    )
)
_GONE = re.compile(r"\A(?:away|on|over the rainbow)\b")


# "Little Edda arrived on the 9th", "our baby Wren, born on Friday".
_NEWBORN = re.compile(
    r"\A(?:[Mm]y |[Oo]ur |and )*(?:(?:[Ll]ittle|[Bb]aby|[Ss]weet)(?: (?:girl|boy))? )+"
    r"(?P<name>[A-Z]\w+),? (?:(?:was|is|has|just|finally) )*(?:arrived|born|joined us)"
    r"(?=\Z|[,!]| (?:on (?:the \d|\d|\w+day)|at \d|today|yesterday|last |this |\w+day))"
)


def introductions_of(text: str, words: Words, company: Company) -> Iterator[Candidate]:
    """Those whom a clause calls "my sister Anna", whatever it goes on to say."""
    born = _NEWBORN.match(text)
    # "Little Italy is here".
    if born and may_be_name(born["name"]) and born["name"].lower() not in english.words("places"):
        company.last = company.keep(
            Person(
                Thing(born["name"], "person"),
                f"{born['name']}, {company.me.label}'s child,",
                "child",
            )
        )
        yield _there_is(company.me, "child", born["name"], words)
        yield _no_longer_pregnant(company.me, words)
    for mention in company.mentions(text):
        person = mention.person
        if mention.start > 0 or not person.named:
            company.last = person
        if person.named and person.relation is not None:
            yield _there_is(company.me, person.role, person.thing.name, words)
        if person.relation is not None and (age := _AGED.match(text, mention.end)) is not None:
            yield _aged(person, age["age"], words)
        if mention.place:
            yield _lives_in(person, mention.place, words)


def _aged(person: Person, age: str, words: Words) -> Candidate:
    """ "My daughter Anna, 14"."""
    text = f"{person.label} is {age} years old"
    return Candidate("fact", person.thing, "age", age, text, (words,), confidence=0.8)


def _lives_in(person: Person, place: str, words: Words) -> Candidate:
    """ "My sister Nuala in Boston has a cold"."""
    text = f"{person.label} lives in {place}"
    where = Thing(place, "place")
    return Candidate(
        "fact", person.thing, "lives_in", place, text, (words,), thing=where, confidence=0.7
    )


def companions_of(claim: Claim, text: str, company: Company) -> Iterator[Candidate]:
    """A pet without a name that somebody has with them where they live: "with my dog".

    Args:
        text: The clause that tells where the speaker lives.
    """
    for mention in company.mentions(text):
        if mention.person.named or not mention.person.animal:
            continue
        if _WITH_MINE.search(text[: mention.end]) and _ENDS.match(text, mention.end):
            yield _there_is(claim.person, mention.person.role, "", claim.words)


def _there_is(
    me: Person,
    role: str,
    name: str,
    words: Words,
    *,
    like: str = "",
    when: When | None = None,
    count: str = "",
) -> Candidate:
    """ "User has a sister named Anna"."""
    relation = RELATIONS[role]
    what = f"{like}{role}".strip()
    counted = bool(count) and count.lower() not in _ONE
    if relation.predicate in _ONLY_ONE and name and not counted:
        text = f"{me.label}'s {what} is {name}"
    else:
        object_ = f"{count.lower()} {what}" if counted else article(what)
        text = _has(me, f"{object_}{f' named {name}' if name else ''}")
    return Candidate(
        type="fact",
        subject=me.thing,
        predicate=relation.predicate,
        object=name or (f"{count} {what}" if counted else what),
        text=text,
        words=(words,),
        thing=thing_of(name, role) if name else None,
        valid_from=(when.since or when.at) if when else None,
        tags=(role,),
        confidence=0.85,
    )


def _has(person: Person, what: str) -> str:
    return sentence(person.label, f"have {what}", tense=Tense.PRESENT, negated=False, ended=False)


def households_of(claim: Claim, company: Company) -> Iterator[Candidate]:
    """Whom somebody has, gets or loses."""
    verb = claim.verb
    if verb.lemma == "have" and verb.negated:
        yield from _none(claim)
    elif (
        verb.lemma in ("have", "own", "keep")
        and not verb.negated
        and verb.tense in (Tense.PRESENT, Tense.PERFECT)
    ) or (
        (verb.lemma in _TAKEN_IN or (verb.lemma == "have" and _BORN.match(verb.tail)))
        and verb.tense in (Tense.PAST, Tense.PERFECT)
        and not verb.negated
    ):
        yield from _members(claim, company)
    elif claim.person.relation is not None:
        yield from _gone(claim)
        if claim.person.role in SEVERAL and (ages := _AGES.match(verb.tail)):
            object_ = f"{claim.person.role} aged {ages[0]}"
            there = _there_is(company.me, claim.person.role, "", claim.words)
            yield replace(there, object=object_, text=_has(company.me, object_))
        called = _CALLED.match(verb.tail) if verb.lemma == "be" and not verb.negated else None
        if called is not None and (called["so"] or is_first_name(called["name"])):
            yield from name_of(claim.person, called["name"], claim.words, company)
    yield from _births(claim, company)
    if verb.lemma == "name" and verb.tense in (Tense.PAST, Tense.PERFECT):
        yield from _named(claim, company)


def _births(claim: Claim, company: Company) -> Iterator[Candidate]:
    """ "We had the baby on Monday", "our son was born yesterday"."""
    verb = claim.verb
    of_mine = claim.person.relation is not None and claim.person.relation.predicate == "has_child"
    born = (of_mine and verb.lemma == "be" and _JUST_BORN.match(verb.tail)) or (
        (verb.lemma == "have" and _THE_BABY.match(verb.tail))
        or (verb.lemma == "give" and verb.tail.startswith("birth"))
    )
    if born and not verb.negated and verb.tense in (Tense.PAST, Tense.PERFECT):
        if of_mine and not claim.person.named:
            yield _there_is(company.me, claim.person.role, "", claim.words)
        yield _no_longer_pregnant(company.me if of_mine else claim.person, claim.words)


def _no_longer_pregnant(who: Person, words: Words) -> Candidate:
    text = f"{who.label} is no longer pregnant"
    return Candidate("fact", who.thing, "has_condition", "pregnant", text, (words,), negated=True)


def _members(claim: Claim, company: Company) -> Iterator[Candidate]:
    tail, when = read_when(claim.verb.tail, claim.said_at)
    tail = tail.replace(" now,", ",")
    if (many := _MANY.match(tail)) is not None:
        kind = many["kind"].lower()
        several = _there_is(claim.person, PLURALS[kind], "", claim.words, when=when)
        yield replace(several, object=kind, text=_has(claim.person, kind))
        return
    first = _MEMBER.search(tail)
    if first is None or first.start() > 12 or _NOT_MINE.search(tail[: first.end()]):
        return
    for member in _MEMBER.finditer(tail):
        kind = member["kind"].lower()
        role = PLURALS.get(kind, kind)
        names = _NAMES.findall(member["names"] or "")
        # "She has a dog called Rex": who she is is not said.
        is_owner = claim.person.thing.name in names
        if is_owner or role not in RELATIONS or not _ENDS.match(tail, member.end()):
            continue
        like = "" if "of" in member["like"] else member["like"].lower()
        if not names:
            shown = (
                kind
                if kind in PLURALS and member["count"].lower() not in ("a", "an", "one")
                else role
            )
            yield _unnamed(claim, role, shown, like, member["count"], when, company)
        for name in names:
            label = f"{name}, {claim.person.label}'s {role},"
            owner = _other_owner(claim, company)
            company.last = company.keep(Person(thing_of(name, role), label, role, owner=owner))
            yield _there_is(claim.person, role, name, claim.words, like=like, when=when)
            aged = re.search(rf"\b{name} ?\((?P<age>\d{{1,2}})\)", member["names"])
            if aged is not None:
                yield _aged(company.last, aged["age"], claim.words)


def _unnamed(
    claim: Claim, role: str, shown: str, like: str, count: str, when: When, company: Company
) -> Candidate:
    label = f"{claim.person.label}'s {role}"
    owner = _other_owner(claim, company)
    thing = thing_of(label, role)
    company.last = company.keep(Person(thing, label, role, named=False, owner=owner))
    found = _there_is(claim.person, role, "", claim.words, like=like, when=when, count=count)
    if shown == role:
        return found
    several = f"{count.lower()} {like}{shown}"
    return replace(found, object=several, text=_has(claim.person, several))


def _other_owner(claim: Claim, company: Company) -> Person | None:
    return None if claim.person is company.me else claim.person


def _none(claim: Claim) -> Iterator[Candidate]:
    none = _NO_FAMILY.search(claim.verb.tail)
    if none is None:
        return
    kind = none["kind"].lower()
    role = PLURALS.get("siblings" if " or " in kind else kind, kind)
    one = role == kind
    if RELATIONS[role].predicate not in _OF_A_HOUSEHOLD or (one and claim.verb.ended):
        return
    statement = sentence(
        claim.person.label,
        f"have {article(kind) if one else f'any {kind}'}",
        tense=Tense.PRESENT,
        negated=True,
        ended=claim.verb.ended,
    )
    yield Candidate(
        type="fact",
        subject=claim.person.thing,
        predicate=RELATIONS[role].predicate,
        object=kind,
        text=statement,
        words=(claim.words,),
        negated=True,
        confidence=0.85,
    )


def _gone(claim: Claim) -> Iterator[Candidate]:
    """ "My dog Rex died": what is said of having him ends."""
    verb = claim.verb
    if verb.tense not in (Tense.PAST, Tense.PERFECT) or verb.negated:
        return
    died = verb.lemma == "die" or (verb.lemma == "pass" and _GONE.match(verb.tail))
    if not died:
        return
    at = read_when(verb.tail, claim.said_at)[1].at
    person = claim.person
    if not person.animal:
        text = f"{person.label} died"
        yield Candidate("event", person.thing, "did", "died", text, (claim.words,), valid_from=at)
        return
    owner = person.owner
    who = owner.label.rstrip(",") if owner else USER
    name = person.thing.name if person.named else person.role
    named = f" named {name}" if person.named else ""
    yield Candidate(
        type="fact",
        subject=owner.thing if owner else Thing(USER, "person"),
        predicate="has_pet",
        object=name,
        text=f"{who} no longer has {article(person.role)}{named}",
        words=(claim.words,),
        negated=True,
        valid_from=at,
    )


def _named(claim: Claim, company: Company) -> Iterator[Candidate]:
    """ "We named her Embla"."""
    tail = re.match(r"(?:him|her|it|them|the \w+) (?P<name>[A-Z]\w+)\Z", claim.verb.tail)
    before = company.last
    if tail is None or before is None or before.relation is None:
        return
    yield _there_is(before.owner or claim.person, before.role, tail["name"], claim.words)

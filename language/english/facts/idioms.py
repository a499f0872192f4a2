"""Set phrases whose subject is not whom they are about: "they promoted me to lead"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from language.english.facts.changes import SINCE_WHEN
from language.english.facts.patterns_health import DRUG
from language.english.facts.people import RELATIONS, Company, Person
from language.english.facts.rules import bare, phrase_of, read_ahead, read_when
from language.english.facts.subjects import without_openers
from language.english.facts.vocabulary import NOT_NAMES, may_be_name, role_in
from language.english.grammatical_person import article, third
from language.facts import HEARSAY, SPOUSE, UNRESOLVED, Candidate, Thing, Words

_MATES = "husband|wife|boyfriend|girlfriend|bf|gf|fianc[eé]e?|partner"
_SUM = (
    r"[€$£]? ?\d[\d.,]*\d?k?(?: ?(?:€|euros?|dollars|pounds|quid))?"
    r"(?: (?:an?|per) (?:hour|day|week|month|year))"
)
# Who puts somebody on a medicine.
_MEDICAL = (
    r"(?:doctor|doc|GP|gp|dentist|nurse|specialist|surgeon|consultant|hospital|clinic|physician"
    r"|\w+ologist|\w+iatrist|[Dd]r\.? [A-Z]\w+)"
)
_MEDICINE_WORDS = 3
_Made = Iterator[Candidate]
_Reader = Callable[[re.Match[str], Person, Words, datetime], _Made]


def said_in_passing(text: str, words: Words, said_at: datetime, company: Company) -> _Made:
    """What such phrases say; most clauses have none."""
    if _ANY.search(text) is None:
        return
    text, _ = without_openers(text)
    for pattern, read in _PHRASES:
        found = pattern.search(text)
        known = company.named(found["o"]) if found is not None and read is _died else None
        # What becomes of people is read elsewhere.
        if found is not None and (known is None or known.animal):
            yield from read(found, (known and known.owner) or company.me, words, said_at)


def _says(me: Person, predicate: str, obj: str, says: str, words: Words, **more: Any) -> Candidate:
    return Candidate("fact", me.thing, predicate, obj, f"{me.label} {says}", (words,), **more)


def _promoted(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    said, when = read_when(found["o"], said_at)
    role = role_in(bare(phrase_of(said) or ""))
    if role:
        yield _says(me, "works_as", role, f"works as {article(role)}", words, valid_from=when.at)


def _dose(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    dose = f"{found['dose']} of {found['o']}"
    yield _says(me, "takes", dose, f"takes {dose}", words)


def _renamed(found: re.Match[str], _me: Person, words: Words, _said_at: datetime) -> _Made:
    before, after = found["before"], found["after"]
    if before in NOT_NAMES or after in NOT_NAMES:
        return
    text = f"{before} is now called {after}"
    named = Candidate("fact", Thing(before, "item"), "name", after, text, (words,))
    # "We call Rocket Biscuit now" counts where Rocket is known.
    yield replace(named, confidence=HEARSAY) if "call " in found[0] else named


def _no_more(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    """ "Piet and I divorced", "Renske and I are not friends any more"."""
    _, when = read_when(found["rest"], said_at)
    divorced = found["how"].endswith("divorced")
    friends = "friends" in found["how"]
    predicate = "married_to" if divorced else "friend_of" if friends else "partner"
    ends = {"married_to": "is no longer married to", "friend_of": "is no longer friends with"}
    who = found["o"]
    if role := found["role"]:
        predicate, who = RELATIONS[role.lower()].predicate, f"their {role}"
    says = f"{ends.get(predicate, 'is no longer together with')} {who}"
    who = SPOUSE if found["role"] else who
    yield _says(me, predicate, who, says, words, negated=True, valid_from=when.at)


def _grown_on(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    """ "Jazz has grown on me"."""
    what = phrase_of(found["o"])
    if what and not what.lower().startswith("my "):
        name = f"{what[0].lower()}{what[1:]}" if what[1:].islower() else what
        liked = _says(me, "likes", bare(name), f"likes {name}", words, stance="positive")
        yield replace(liked, type="preference")


def _ex(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    """ "Kenji is my ex now"."""
    says = f"is no longer together with {found['o']}"
    yield _says(me, "partner", found["o"], says, words, negated=True, valid_from=said_at)


_SUBSCRIBED = re.compile(r"(?P<o>.+) (?:subscription|membership|account|plan)")
_THE_THING = re.compile(r"(?P<o>[A-Z]\w+(?: [A-Z]\w+)*) (?:thing|plan|idea|job|offer|deal|gig)")


def _cancelled(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    what = phrase_of(found["o"])
    used = _SUBSCRIBED.fullmatch(bare(what or ""))
    # "The Arcadia thing" may be a job, a trip or a home.
    vague = _THE_THING.fullmatch(bare(what or ""))
    if used is not None:
        says = f"no longer has {third(what or '')}"
        yield _says(me, "uses", used["o"], says, words, negated=True)
    elif vague is not None:
        yield _says(me, UNRESOLVED, vague["o"], f"no longer has {what}", words, negated=True)
    elif what:
        yield _says(me, "plans", bare(what), f"no longer plans {third(what)}", words, negated=True)


def _died(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    name = found["o"]
    if not may_be_name(name):
        return
    _, when = read_when(found["rest"], said_at)
    says = f"no longer has {name}"
    yield _says(me, "has_pet", name, says, words, negated=True, valid_from=when.at)


def _moved_date(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    _, when = read_ahead(f"on {found['day']}", said_at)
    if when.at is None:
        return
    what = found["o"]
    says = f"has {article(what)} on {when.at.day} {when.at:%B %Y}"
    yield _says(me, "plans", what, says, words, valid_from=when.at)


def _paid(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    sum_ = found["o"].strip()
    yield _says(me, "salary", sum_, f"is paid {sum_}", words)
    place = phrase_of(found["org"] or "")
    if place:
        yield _says(me, "works_at", bare(place), f"works at {place}", words)


def _new(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    """ "I got a new phone, a Pixel 9"."""
    what, which = found["what"], found["o"]
    predicate = "drives" if what in ("car", "van") else "owns"
    text = f"{me.label}'s {what} is {article(which)}"
    aspect = what if predicate == "owns" else ""
    yield Candidate("fact", me.thing, predicate, which, text, (words,), aspect=aspect)


def _without(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    """ "Six weeks without a cigarette"."""
    smokes = re.search(r"cig|smok|vap|nicotine", found["o"]) is not None
    predicate, obj, verb = (
        ("smokes", "smokes", "smokes")
        if smokes
        else ("drinks_alcohol", "alcohol", "drinks alcohol")
    )
    text = f"{me.label} no longer {verb}"
    yield Candidate("fact", me.thing, predicate, obj, text, (words,), negated=True)


def _put_on(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    """ "The dentist put me on antibiotics"; not "They moved me to the front row"."""
    said, when = read_when(found["o"], said_at)
    medicine = phrase_of(said) or ""
    treated = not found["they"] or DRUG.search(medicine)
    if treated and 0 < len(medicine.split()) <= _MEDICINE_WORDS:
        since = when.at or said_at
        yield _says(me, "takes", medicine, f"takes {medicine}", words, valid_from=since)
        if before := found["old"]:
            no_longer = f"no longer takes {before}"
            yield _says(me, "takes", before, no_longer, words, negated=True, valid_from=since)


def _cannot_bear(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    """ "Ibuprofen gives me hives"."""
    what = phrase_of(f"{found['o'][0].lower()}{found['o'][1:]}")
    if what:
        yield _says(me, "allergic_to", what, f"is allergic to {what}", words)


def _wed(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    """ "Eva and I got married in May"."""
    if not may_be_name(found["o"]):
        return
    read = read_ahead if found["now"] else read_when
    _, when = read(found["rest"], said_at)
    if when.at is not None and when.at > said_at:
        return  # "Eva and I get married in June."
    predicate = f"{found['how']}_to"
    says = f"is {found['how']} to {found['o']}"
    yield _says(me, predicate, found["o"], says, words, valid_from=when.at)


def _banks(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    yield Candidate(
        "fact", me.thing, "bank", found["o"], f"{me.label}'s bank is {found['o']}", (words,)
    )


def _provided(found: re.Match[str], me: Person, words: Words, _said_at: datetime) -> _Made:
    """ "We moved our account over to Umpqua", "changed to Proximus for the wifi"."""
    what = found["what"] or found["for"] or found["banks"]
    what = "bank" if what in ("account", "accounts", "banks") else what
    text = f"{me.label}'s {what} is {found['o']}"
    yield Candidate("fact", me.thing, what.replace("-", ""), found["o"], text, (words,))


def _expires(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    """ "My passport expires in May 2027", "my lease is up next month"."""
    what, how = found["o"], found["how"]
    left, when = read_ahead(found["rest"], said_at)
    if when.at is None or left.strip():
        return
    said = f"in {when.at:%B %Y}"
    if _A_DAY.search(found["rest"]):
        said = f"on {when.at.day} {when.at:%B %Y}"
    elif _A_YEAR.fullmatch(found["rest"]):
        said = f"in {when.at.year}"
    end = "ends" if "end" in how or "up" in how else "expires"
    statement = f"{me.label}'s {what} {end} {said}"
    yield Candidate("fact", me.thing, f"{what.replace(' ', '_')}_{end}", said, statement, (words,))


def _dated(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    """ "I have a dentist appointment on Thursday at 9", "I've got a flight to Rome on Friday"."""
    left, when = read_ahead(found["rest"], said_at)
    if when.at is None or when.at.date() < said_at.date() or len(left.split()) > 2:
        return
    says = f"has {article(found['o'])} on {when.at.day} {when.at:%B %Y}"
    yield _says(me, "plans", found["o"], says, words, valid_from=when.at)


def _retires(found: re.Match[str], me: Person, words: Words, said_at: datetime) -> _Made:
    _, when = read_ahead(found["rest"], said_at)
    if when.at is not None and when.at > said_at:
        yield _says(me, "plans", "retire", "plans to retire", words, valid_from=when.at)


_SUPPLY = r"wi-?fi|internet|broadband|electricity|energy"
_DATED = (
    r"(?:(?!(?:the|call|chat|look)\b)[a-z][\w'-]* ){0,2}(?:appointment|exam|interview|flight"
    r"|surgery|operation|viva|audition|deadline|check-?up|scan|blood test|driving test|recital"
    r"|tournament)"
    r"(?: (?:to|at|with) (?:(?:the |my )?[a-z]+|(?:the )?[A-Z][\w'-]+(?: [A-Z][\w'-]+)?))?"
)
_A_DAY = re.compile(r"(?i)\b\d{1,2}(?:st|nd|rd|th)?\b|day\b|tomorrow|tonight")
_A_YEAR = re.compile(r"in \d{4}")
_PAPER = (
    r"(?:passport|visa|driving licence|driver's license|licence|license|lease|tenancy|contract"
    r"|notice period|warranty|(?:car |travel |health )?insurance|mortgage|permit"
    r"|(?:residence|work) permit"
    r"|id card|bank card|season ticket|railcard|internship|sabbatical|trial|probation|MOT)"
)


# Who is given so comes back: "to the vet", "for an hour", "until Monday".
_LENT = (
    r"(?: to (?:the|a|our|my) (?:vet|groomer|sitter|\w+[- ]?sitter|kennels?|walker|nurse|doctor)\b"
    r"| for (?:an?|the|one|two|three|some|a few|\d+|now)\b(?! (?:good|new|better)\b)"
    r"| (?:until|till|while|whilst|during|overnight)\b)"
)

# One of these is in every phrase: most clauses are done here.
_ANY = re.compile(
    r"promoted|raised|increased|lower|reduced|upped|changed|put up|cut|renam"
    r"|now (?:called|named)|call |ran away|missing|divorced|broke up|split|separated"
    r"|friends|together|fell out|cancel|called off|off the table|died|passed|gave|given"
    r"|rehomed|(?i:move|switched|changed to)|postpone|shift|schedule|push|pays? me|paying me"
    r"|paid|without|free|sober|clean"
    r"|me on\b|me to|me from|me onto|hives|rash|out in|my ex\b|off\b|fell through"
    r"|fallen through|not happening|on me\b|and I .*(?:married|engaged)"
    r"|expire|ends|runs? out|is up|bank with|retir"
    r"|have (?:got )?(?:an?|my|our) |a new |raise to|rise to"
)
_PHRASES: tuple[tuple[re.Pattern[str], _Reader], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (r"\A(?P<o>[A-Za-z][\w -]{2,30}?) (?:ha|i|a)\w+ .{0,12}grow(?:n|ing) on me", _grown_on),
        (r"\A(?P<o>[A-Za-z]\w+) is (?:now )?my ex\b", _ex),
        (
            r"\A(?P<o>[A-Z]\w+) and I (?:have |just |finally )*(?:got|are|(?P<now>get)) "
            r"(?:now |finally )?(?P<how>married|engaged)\b(?! to\b)(?P<rest>.*)",
            _wed,
        ),
        (
            rf"\A(?:I|[Ww]e) have (?:got )?(?:an?|my|our) (?P<o>{_DATED}) (?P<rest>(?:on|next|this"
            r"|tomorrow|in)\b.*)",
            _dated,
        ),
        (
            r"\AI (?:am retiring|(?:will )?retire) (?P<rest>(?:in|on|next|this|at the end)\b.*)",
            _retires,
        ),
        (r"\A(?:I|[Ww]e) (?:still |now )?bank with (?P<o>[A-Z]\w+(?: [A-Z]\w+)*)", _banks),
        (
            r"(?:\A|\b(?:I|[Ww]e) (?:have )?)(?:[Mm]oved|[Ss]witched|[Cc]hanged) (?:(?:my|our"
            rf"|all my) (?P<what>accounts?|{_SUPPLY})(?: over)? to|(?=banks )(?P<banks>banks) to"
            rf"|(?:over )?to"
            rf"(?=.* for (?:the|our|my) (?P<for>{_SUPPLY}))) (?P<o>[A-Z]\w+(?: [A-Z]\w+)*)",
            _provided,
        ),
        (
            rf"\A(?:[Mm]y|[Oo]ur) (?:\w+ )??(?P<o>{_PAPER}) (?:only )?(?P<how>expires|will expire"
            r"|ends|will end|runs out|is up) (?P<rest>(?:on|in|at the end of|by the end of|next"
            r"|this|tomorrow).*)",
            _expires,
        ),
        (r"\bpromoted me\b[^,]*, (?:so )?(?P<o>[\w -]+?) now\Z", _promoted),
        (
            r"\b(?:raised|increased|lowered|reduced|upped|changed|put up|cut) (?:my"
            r"|the) (?P<o>[a-z][\w-]+)"
            r"(?: dose)? (?:from .+ )?to (?P<dose>\d[\d.,]* ?(?:mg|mcg|g|ml|units))\b",
            _dose,
        ),
        (
            r"\brenamed? [\w' ]*?(?:from )?(?P<before>[A-Z]\w+) (?:to|into) (?P<after>[A-Z]\w+)",
            _renamed,
        ),
        (r"\b[Ww]e (?:now )?call (?P<before>[A-Z]\w+) (?P<after>[A-Z]\w+) now\b", _renamed),
        (r"(?P<before>[A-Z]\w+) is now (?:called|named) (?P<after>[A-Z]\w+)", _renamed),
        (
            rf"\A(?P<o>[A-Z]\w+|(?i:my|the) (?P<role>{_MATES})) and I (?P<how>(?:got "
            rf"|are )?divorced|(?:broke up|(?:have )?(?:split(?: up)?|separated)"
            rf"|have broken up){SINCE_WHEN}|have divorced"
            r"|are not friends|are no longer friends|are not together|fell out)\b(?P<rest>.*)",
            _no_more,
        ),
        (
            r"\A(?P<o>(?:[Tt]he |[Oo]ur |[Mm]y )?[\w' ]{3,40}?) (?:(?:is|was|got|has been|is being"
            r"|had to be) (?:(?:cancelled|canceled)|called off|off the table|not happening)\b"
            r"|(?:fell|has fallen) through\b|is (?:all )?off(?=\Z|[,.!;]| (?:now|again|because"
            r"|after)\b))",
            _cancelled,
        ),
        (r"\b(?:(?:cancelled|canceled)|called off) (?P<o>(?:the|my|our) [\w' ]{3,40})", _cancelled),
        (
            r"\A(?P<o>[A-Z]\w+) (?:died|passed away|ran away|went missing|passed(?=\Z| (?:on|in"
            r"|last|yesterday|today)\b))(?! on (?:it|us|me)\b)(?P<rest>.*)",
            _died,
        ),
        (
            rf"(?:(?:\b{_MEDICAL}|\A(?P<they>[Tt]hey))(?: has| have)?(?: just| now)?"
            r" (?:(?:put|started) me on|(?:switched|moved|changed) me (?:over )?(?:from "
            rf"(?P<old>[\w-]+) )?(?:over )?(?:to|onto))|\b{_MEDICAL} (?:now |just )?(?:has|had|got)"
            r" me on) (?!(?:an? |the )?(?:\w+ )?(?:diet|list|hold|leave|rest|bed|edge|notice|plan"
            r"|trial|nights|days|shifts?|team|project|desk|speaker|mute|office|department|video"
            r"|flight|room|role|branch|bus|train)\b)(?:an? |some |the )?(?P<o>[a-z].+)",
            _put_on,
        ),
        (
            r"\A(?P<o>[A-Za-z][\w-]+(?: [a-z][\w-]+)?) (?:(?:gives?|gave) me (?:hives"
            r"|an? (?:\w+ )?rash)|makes? me (?:come|break) out in\b)",
            _cannot_bear,
        ),
        (rf"\b(?:gave|have given) (?P<o>[A-Z]\w+)(?!.*{_LENT})(?P<rest> (?:to|away)\b.*)", _died),
        (r"\b(?:rehomed|said goodbye to|say goodbye to) (?P<o>[A-Z]\w+)(?P<rest>.*)", _died),
        (
            r"\A(?i:they|he|she|my \w+|the \w+|it) (?:pays?|are paying|is paying) me"
            rf" (?P<o>{_SUM})(?: (?:at|in) (?P<org>the [a-z].+|[A-Z].+))?",
            _paid,
        ),
        (
            rf"\b(?:I|[Ww]e) (?:get|am|are) paid (?P<o>{_SUM})(?: (?:at|by) (?P<org>the [a-z].+"
            rf"|[A-Z].+))?",
            _paid,
        ),
        (
            r"\b(?:I|me) (?:\w+ )?(?:(?:got|received) )?a (?:pay )?(?:raise|rise) to (?P<o>[€$£]?\d"
            r"[\d.,]*k?(?: (?:an?|per) (?:hour|month|year))?)(?P<org>)",
            _paid,
        ),
        (
            r"\b(?:I|[Ww]e) (?:\w+ )?(?:got|bought)(?: myself| ourselves)? a new (?P<what>phone"
            r"|laptop|computer|car|van|bike|camera|watch|tablet|guitar|piano|cello|telescope),? "
            r"(?:an? |it is an? )(?P<o>[A-Z][\w-]*(?: [A-Z\d][\w-]*){0,3})",
            _new,
        ),
        (
            r"\b(?:days|weeks|months|years?) (?P<o>(?:without|off) (?:a |any |the )?(?:single )?"
            r"(?:cigs?|cigarettes?|smok(?:e|ing)|fags|vap(?:e|ing)|nicotine|drink|booze|alcohol)"
            r"|smoke[- ]free|nicotine[- ]free|(?:clean and )?sober)\b",
            _without,
        ),
        (
            r"\b(?:moved|postponed|rescheduled|shifted|pushed|(?:had|have) to (?:move|postpone|push"
            r"|reschedule|shift)) (?:the|my|our) (?P<o>[\w ]{3,30}?)(?: back)? to (?P<day>.*\d.*)",
            _moved_date,
        ),
    )
)

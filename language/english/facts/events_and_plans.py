"""Patterns of what happens in a life, and of what people want and plan."""

from __future__ import annotations

import re
from collections.abc import Iterator

from language import english
from language.english.facts.rules import (
    PAST_TENSES,
    Claim,
    Mode,
    Options,
    When,
    read_ahead,
    rows_of,
    table_of,
    without_reasons,
)
from language.english.facts.verbs import Tense, Verb, without_fillers
from language.english.facts.vocabulary import is_first_name, role_in
from language.english.grammatical_person import sentence, third
from language.english.judging.object_kinds import is_place_name
from language.facts import Candidate

_PLACES = r"(?P<o>(?:the )?[A-Z][\w'-]+.*)"
_HAPPENED: Options = {"mode": Mode.EVENT, "type": "event"}


# Departments, subjects at school and the like: "I was in Surgery yesterday".
_NO_TOWN = re.compile(
    r"(?i)\b(?:surgery|a&e|er|icu|radiology|oncology|cardiology|neurology|maternity|paediatrics"
    r"|pediatrics|triage|theatre|ward|clinic|hospital|recovery|rehab|sales|marketing|finance"
    r"|accounting|accounts|engineering|legal|procurement|logistics|operations|support|hr|it|pr|qa"
    r"|math|maths|mathematics|physics|chemistry|biology|history|geography|english|latin|court"
    r"|class|school|meetings?|detention|year|grade|room|building|line|shock|trouble"
    r"|pain|tears|bed)\Z|\A(?:room|building|ward|year|grade|hall|meetings?)\b"
    r"|\A(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december)\Z"
)


def _is_town(words: str) -> bool:
    """ "I was in Slack yesterday" is no journey."""
    low = words.lower()
    return not _NO_TOWN.search(low) and low not in english.words("products") | english.words(
        "software"
    )


def _is_known_town(words: str) -> bool:
    """ "Back from Boots" is no journey either, and Anna is a town, but rarely meant."""
    plain = words.lower()
    famous = plain in english.words("places")
    return _is_town(words) and (famous or (is_place_name(words) and not is_first_name(words)))


_did = rows_of("did", "{verb} {o}", **_HAPPENED)
_visited = rows_of("visited", "visit {o}", kind="place", **_HAPPENED)
_ROWS = (
    _visited(rf"visit: {_PLACES}", object="{place}"),
    _visited(r"be: in (?P<o>[A-Z][\w'-]+(?: [A-Z][\w'-]+)*)\Z", dated=True, accepts=_is_town),
    _visited(
        r"come get be: back from (?P<o>[A-Z][\w'-]+(?: [A-Z][\w'-]+)*)", accepts=_is_known_town
    ),
    _visited(r"be: to (?P<o>[A-Z][\w'-]+(?: [A-Z][\w'-]+)*)"),
    _visited(
        r"travel fly go: (?:all the way |on (?:a|our|my) (?:trip|vacation|holiday"
        r"|honeymoon) )?(?:to|around|through) (?P<o>(?:the )?[A-Z][\w'-]+.*)",
        "{verb} to {o}",
        dated=True,
        object="{place}",
    ),
    _did(
        r"go: (?P<o>(?:to (?:an?|the|my) .+|on (?:an?|my|our) .+|(?:camping|hiking"
        r"|skiing|surfing|kayaking|sailing|backpacking|scuba diving"
        r"|bungee jumping|skydiving|snorkeling|paragliding)\b.*))",
        confidence=0.65,
        dated=True,
    ),
    _did(r"attend: (?P<o>(?:an?|the|my|our|[A-Z]).+)", confidence=0.7, dated=True),
    _did(
        r"run complete finish: (?P<o>(?:an?|my|the|our) (?:[\w-]+ ){0,3}(?:marathon"
        r"|half[- ]marathon|5k|10k|race|triathlon|ultramarathon|thesis|degree|book|novel|course"
        r"|training|phd|bootcamp|certification|manuscript|residency|internship|screenplay"
        r"|album)\b.*)"
    ),
    _did(
        r"finish: (?:reading )?(?P<o>[A-Z][\w'-]+(?: [A-Z][\w'-]+)*)\Z",
        confidence=0.7,
    ),
    _did(r"get: (?P<o>my (?:[\w-]+ ){0,2}(?:licen[cs]e|degree|citizenship|black belt))\Z"),
    _did(
        r"book: (?P<o>(?:an?|our|my|two) (?:\w+ )?(?:week|trip|holiday|flight|course|cruise)s?\b.*)"
    ),
    _did(r"win: (?P<o>(?:an?|the|my|first|second|third|our) .+)"),
    _did(
        r"pass fail defend: (?P<o>(?:my|the|his|her|their) (?:[\w-]+ ){0,4}(?:exams?|tests?|thesis"
        r"|finals?|certification|interview|phd|dissertation|viva|licen[cs]e|boards?|bar)\b.*)"
    ),
    _did(r"get be: (?P<o>(?:married|divorced|engaged|promoted|naturalised|ordained|baptised))\Z"),
    _did(r"publish release launch record: (?P<o>(?:my|our|an?) .+)"),
    _did(r"perform sing: (?P<o>(?:at|in|on) .+)"),
    _did(r"sign: up (?P<o>(?:for|as) (?:an?|the|my) .+)", "sign up {o}"),
    _did(
        r"join: (?!\w+ (?:\w+ )?(?:call|meeting|wifi|chat|server|queue|stream|line)\b)(?P<o>(?:an?"
        r"|the|my local|our local) .+)"
    ),
    _did(r"climb hike: (?P<o>(?:Mount |Mt\.? |the )?[A-Z].+)"),
    _did(
        r"meet: (?:my|our) (?P<o>(?:now[- ])?(?:husband|wife|partner|girlfriend|boyfriend"
        r"|fiancée?)\b.+)",
        "meet their {o}",
    ),
    _did(
        r"lose: (?P<o>(?:my|our) (?:dog|cat|father|mother|dad|mum|mom|grandmother"
        r"|grandfather|grandma|grandpa|uncle|aunt|brother|sister|husband|wife"
        r"|son|daughter|best friend|house|home)\b.*)"
    ),
    _did(
        r"buy adopt: (?P<o>(?:an?|our first|my first|a new) (?:[\w-]+ ){0,3}(?:house|flat"
        r"|apartment|home|car)\b.*)"
    ),
    _did(
        r"receive: (?P<o>(?:an?|the|my) .*(?:award|scholarship|grant|diploma|degree"
        r"|prize|medal|promotion)\b.*)"
    ),
    _did(r"volunteer: (?P<o>(?:at|with|for) .+)"),
    _did(r"see: (?P<o>[A-Z][\w'-]+(?: [A-Z][\w'-]+)* (?:live|in concert)\b.*)"),
    _did(r"celebrate: (?P<o>(?:my|our) .*(?:birthday|anniversary|graduation|wedding)\b.*)"),
    _did(
        r"buy take build paint plant give receive finish start make: (?P<o>(?:an?|my|our"
        r"|the) (?!(?:look|break|while|lot|bit|few|picture|photo|pic|screenshot|chance|step|first"
        r"|mistake|decision|call|nap|shower|walk|try|masters?|master's|phd|doctorate|degree|job"
        r"|apprenticeship|different|difference|new approach)\b).+)",
        dated=True,
        confidence=0.6,
    ),
    _did(
        r"have: (?P<o>(?:my|his|her|their) (?:[\w-]+ ){0,2}\w+ (?:replaced|removed|taken out"
        r"|operated on|pulled|amputated|straightened|pinned))\b"
    ),
    _did(
        r"have: (?P<o>(?:surgery|an operation|a miscarriage|a stroke|a heart attack|a car accident"
        r"|an accident|a baby|twins|my (?:\w+ )?(?:surgery|wedding))\b.*)"
    ),
)

EVENTS = table_of(_ROWS)

# What is worth knowing that somebody wants or plans; "to make sure" is not.
_LIFE = re.compile(
    r"(?i)(?:learn (?:to |how to )?(?!more|about|how (?:to|I) (?:use|apply|calc|prove|solve)|it"
    r"|this|from|the (?!(?:piano|guitar|cello|violin|drums|flute|harp|organ)\b))\S|move |visit "
    r"|travel |become |retire|adopt |get married|marry|quit |give up |stop (?:smoking|drinking"
    r"|eating)|lose (?:weight|\d|\w+ (?:kilos|pounds))|run (?:a|the|my) (?:[\w-]+"
    r" ){0,2}(?:marathon|half|5k|10k|race|ultra|business|bakery|shop)|climb |start (?:a|my|our)"
    r" (?:[\w-]+ )?(?:business|family|company|blog|podcast|garden|bakery|restaurant|degree|course"
    r"|phd|charity|shop)|open (?:a|my|our) |buy (?:a|an|my|our) (?:[\w-]+ ){0,2}(?:house|flat"
    r"|apartment|car|home|boat|van|bike|piano|guitar|farm|cabin|camera|motorbike|telescope)|study"
    r" |hike |walk the |sail |renovate |publish |write a (?:[\w-]+ )?(?:book|novel|memoir)"
    r"|emigrate|go (?:back )?to (?:university|college|school|[A-Z])|go (?:freelance|vegan"
    r"|vegetarian)|(?:get|have|adopt) (?:a|another) (?:[\w-]+ )?(?:dog|cat|puppy|kitten|baby|pet"
    r"|tattoo|horse)|become |change careers?|switch (?:jobs|careers?)|apply (?:to|for) |graduate"
    r"|take (?:a|my) (?:[\w-]+ )?(?:trip|course|exam|sabbatical|gap year)|fly to |work (?:as|at"
    r"|in) (?:an?|[A-Z])|have (?:kids|children)|propose |see the northern |compete in |attend "
    r"|join (?:a|the) |raise |expect (?:twins|(?:an?|our|my) (?:\w+ )?(?:child|baby)(?! \w)))"
)


def is_life(words: str) -> bool:
    """Whether the infinitive is a plan of one's life rather than of the conversation."""
    return _LIFE.match(words) is not None


# In the present tense they tell of what is to come: "we fly to Kyoto on the 3rd".
MOVES = frozenset("fly leave start move travel go return begin marry graduate turn".split())
# These say so even without a date; the others are plans when one is told.
GREAT_STEPS = frozenset(
    "move marry retire emigrate adopt graduate relocate divorce renovate".split()
)
DATED_STEPS = frozenset(
    "visit travel fly attend sit start begin run launch go take compete hike sail join"
    " publish propose study leave walk perform host finish "
    "train celebrate meet return climb open release defend present speak cycle spend book".split()
)


_UNDER_WAY = re.compile(r"(?i)\bthis (?:year|month|week)\b")


def plans_of(claim: Claim, tail: str, when: When) -> Iterator[Candidate]:
    verb = claim.verb
    said = without_reasons(_ASIDE.split(tail)[0])
    if not said or re.search(r"\byou(?:r|rs)?\b|·", said) or len(said.split()) > 12:
        return
    dated = when.at is not None and when.at.date() > claim.said_at.date()
    wide = verb.lemma in GREAT_STEPS and len(said.split()) > 1
    wide |= dated and verb.lemma == "be" and said[:2] == "a " and role_in(said[2:]) is not None
    if (
        not wide
        and not (dated and verb.lemma in DATED_STEPS)
        and not is_life(f"{verb.lemma} {said}")
    ):
        return
    if _ERRAND.match(f"{verb.lemma} {said}"):
        return
    if when.at is not None and not dated and _UNDER_WAY.search(claim.verb.tail):
        when = When()
    if (when.at is not None and not dated) or re.match(
        r"(?:an?|the)? ?(?:few|couple|bit|lot)\b", said
    ):
        return
    yield _plan(claim, "plans", f"{verb.lemma} {said}", when, negated=verb.negated)


def wishes_of(claim: Claim) -> Iterator[Candidate]:
    """ "I'd love to learn to sail", "we're planning to move"."""
    verb = claim.verb
    if verb.tense in PAST_TENSES or (verb.tense is Tense.PERFECT and verb.lemma != "plan"):
        return
    to = _wished(verb, f"{verb.tail} {claim.lead}".strip())
    if to is None:
        return
    what, when = read_ahead(to["what"], claim.said_at)
    said = without_reasons(without_fillers(what))
    if not said or not _is_plain(said):
        return
    planned = verb.lemma in ("plan", "intend", "aim", "save")
    if verb.lemma == "consider" or (
        not is_life(said)
        and not (planned and re.match(r"(?:an?|our|my|visiting|moving|going)\b", said))
    ):
        return
    saved_for = verb.lemma == "save" and said.startswith(("a ", "an ", "our ", "my "))
    predicate = "plans" if planned and not saved_for else "wants"
    yield _plan(claim, predicate, said, when, negated=verb.negated)


def _wished(verb: Verb, raw: str) -> re.Match[str] | None:
    """What is wanted: "to sail"; of what one is planning also "a trip"."""
    # "I'm trying to quit vim" is about vim.
    which = r"(?=learn (?!how)|lose |quit \w+ing|give up |stop )" if verb.lemma == "try" else ""
    to = re.match(rf"(?:(?:to|on)\s+|up to\s+){which}(?P<what>.+)", raw)
    if to is None and verb.lemma == "save":
        to = re.match(r"(?:up )?for (?P<what>(?:an?|our|my) .+)", raw)
    if to is None and verb.tense is Tense.PROGRESSIVE and verb.lemma == "plan":
        to = re.match(r"(?P<what>(?:an?|our|my) .+)", raw)
    return to


def _is_plain(said: str) -> bool:
    """Whether it is short, of nobody else, and more than an errand."""
    return not (
        re.search(r"\byou(?:r|rs)?\b|·", said)
        or len(said.split()) > 12
        or _SAYS_NOT_WHAT.search(said)
        or re.match(r"(?:an?|the)? ?(?:few|couple|bit|lot)\b", said)
        or _ERRAND.match(said)
    )


# "A trip there", "to work in the future".
_SAYS_NOT_WHAT = re.compile(
    r"(?i)\A(?:an? )?\w+ (?:there|in the future|(?:in|at|with|on|up on) (?:it|that|them))\Z"
)
# Where a date was taken out, or something is asked for, another thought begins.
_ASIDE = re.compile(r" ,|, (?=[^,]*\bplease\Z)")
# What is over by tomorrow.
_ERRAND = re.compile(
    r"(?i)(?:(?:an?|the|my|our) )?(?:(?:quick|little|shopping|grocery|day) )*(?:trip|run"
    r"|outing)(?: to (?:the )?(?:\w+ )?(?:park|store|stores|mall|gym|supermarket|market|shops?"
    r"|walmart|target|ikea|costco)\b|\Z)|(?:shopping|grocery) |(?:go out|come over|be back"
    r"|come by)\Z|meet(?:ing)? (?:with )?(?:my|our|the)\b"
)


def _plan(claim: Claim, predicate: str, what: str, when: When, *, negated: bool) -> Candidate:
    verb = "plan" if predicate == "plans" else "want"
    infinitive = not re.match(r"(?:an?|our|my)\b|\w+ing\b", what)
    says = f"{verb} {'to ' if infinitive else ''}{what}"
    ended = claim.verb.ended
    return Candidate(
        type="fact",
        subject=claim.person.thing,
        predicate=predicate,
        object=third(what),
        text=sentence(
            claim.person.label, third(says), tense=Tense.PRESENT, negated=negated, ended=ended
        ),
        words=(claim.words,),
        negated=negated,
        corrects=claim.corrects,
        valid_from=when.at or when.since,
        confidence=0.7,
    )

"""What is told from aside: "now that I've left Siemens, what becomes of my pension?"

Each aside is put as a clause of its own, as whoever meant to tell it would have said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from language.english.facts import guards
from language.english.facts.people import PLURALS, RELATIONS, Person
from language.english.facts.sentences import Clause, Sentence, spelt_out
from language.english.facts.verbs import ING, PAST, past
from language.english.facts.vocabulary import DIET, IDENTITIES, NATION, NOT_NAMES, role_in
from language.english.grammatical_person import article
from language.facts import SPOUSE, Candidate, Words

_NAME = r"(?-i:[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’.&-]+(?: [A-ZÀ-ÖØ-Þ][\w'’&-]+){0,2})"
_HOME = (
    r"(?:place|flat|apartment|house|home|studio|room|cottage|villa|bungalow|city|town|village"
    r"|neighbou?rhood|hometown)"
)
_JOB = r"(?:job|role|position|post|gig|employer|company|internship|boss)"
_VERB = r"[a-z]+"
_STEPS = frozenset(
    "leave sell move quit stop start buy adopt retire divorce marry break lose finish become"
    " join change switch give get graduate drop relocate settle resign".split()
)
_STOP = r"(?=\s*(?:[,;:.!?)]|\Z|\s(?:I|we|and|but|so|which|is|are|has|have|was|now)\b))"
_SINCE = re.compile(
    rf"(?i)(?:\A|[,;:(–—-] ?|\b\w+ )(?:ever since|since|after|now that|when"
    rf"|because|as) (?P<who>I|we)(?: have|'ve| had|'d)? (?P<rest>(?:just |finally |recently )?"
    rf"(?P<verb>{_VERB})\b[^,;:.!?]{{0,60}}?){_STOP}"
)
_DOING = re.compile(
    rf"(?i)\b(?:since|after|before|upon) (?P<verb>{_VERB}ing) (?P<rest>[^,;:.!?]{{2,50}}?){_STOP}"
)
_GONE = re.compile(
    r"\b(?i:since|after|now that|when|before) (?P<o>[A-Z]\w+) (?:has |had )?"
    r"(?P<how>died|passed away|moved out|left me)\b"
)
_OTHERS = re.compile(r"\b(?:he|she|they|you|[A-Z]\w+)(?:'s| is| are| has)\b|'s \Z")
_IT = re.compile(r"\bit\Z")
_BACK_WHEN = re.compile(
    rf"(?i)\b(?:back when|when|back in the days when|in the days when|from when) (?:I|we) "
    rf"(?:still (?P<still>{_VERB})|used to (?P<used>{_VERB}))(?P<rest>[^,;:.!?]{{0,40}}?){_STOP}"
)
_NEW_HOME = re.compile(
    rf"(?i)(?:\b(?:my|our) (?:new|current|lovely|little|tiny|small|own|first|lovely new)"
    rf"|\Anew) (?:\w+ )?{_HOME} (?:here )?(?:is )?in (?P<o>{_NAME})"
)
_HERE = re.compile(
    rf"\b(?:here in (?P<o>{_NAME})"
    rf"|(?:settled|settling|unpacked|unpacking|arrived) (?:\w+ )?in (?P<then>{_NAME}))"
)
_NEW_JOB = re.compile(
    rf"(?i)\b(?:my|our) (?:new|current) (?:\w+ )?{_JOB} (?:at|with|for|is at) (?P<o>{_NAME})"
)
_OLD_JOB = re.compile(
    rf"(?i)\b(?:my|our) (?:old|former|previous|ex|last) ?-?{_JOB} (?:at|with|for) (?P<o>{_NAME})"
    rf"|\b(?:my|our) (?:old|former|previous|ex)[ -]employer,? (?P<name>{_NAME})"
    rf"|\b(?:since|after|before) leaving (?P<left>{_NAME})"
    rf"|\bmy last day at (?P<last>{_NAME}) (?:was|is today)\b"
)
_OLD_HOME = re.compile(rf"(?i)\b(?:my|our) (?:old|former|previous|last) {_HOME} in (?P<o>{_NAME})")
_PARTED = re.compile(
    r"(?i)\b(?:since|after|with|through|following) (?:the|my|our) (?:divorce|separation"
    r"|break-?up)\b|\bcalled off (?:the|my|our) (?:wedding|engagement)\b|\bmy ex[- ](?:husband"
    r"|wife)\b|\b(?:the|my|our) divorce\b.{0,30}? (?:came "
    r"through|is final|was finali[sz]ed|went through)\b"
)
_BACK_IN = re.compile(
    rf"\b(?:I am|we are) (?:now |finally )?back (?:home )?in (?P<o>{_NAME})"
    r"(?=,? (?:since|for good|permanently|to stay|now|again)\b)"
)
_CLEFT = re.compile(
    r"\b(?:[Ii]t|[Tt]hat) (?:is|was) (?!not\b)(?P<o>[\w'][\w' -]{1,40}?) (?:that |which |who )?"
    r"(?P<who>I|we) (?P<rest>(?:am|are|was|have|live|work|use|like|love|hate|speak|play|drive|eat"
    r"|drink|take|study|learn|prefer|need|want)\b[^,;:.!?]{0,40}?)\Z"
)
_WHO = r"(?:(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er) [\w-]+(?: [A-Z]\w+)?|[A-Z]\w+)"
# "It's not Dario who works there, it's Marta".
_NOT_THEM = re.compile(
    rf"\b[Ii]t (?:is|was) not (?P<not>{_WHO}|me) (?:who|that) (?P<rest>[^,;]{{4,60}}),? (?:but"
    rf"|it is) (?:(?:his|her) \w+ (?=[A-Z]))?(?P<who>{_WHO})"
)
_THEM_NOT = re.compile(
    rf"\b[Ii]t (?:is|was) (?P<who>{_WHO}) (?:who|that) (?P<rest>[^,;]{{4,60}}),? (?:and )?not "
    rf"(?P<not>{_WHO}|me)\Z"
)
# "As a trainee solicitor I bill by the minute".
_AS_A = re.compile(
    r"(?:\A|[.,;:] )[Aa]s an? (?P<o>[\w-]+(?: [\w-]+){0,3}?),? (?=(?:I|we) (?!(?:was|were|had|did"
    r"|used|would)\b|\w+ed\b))"
)
_KIND_OF_PERSON = re.compile(
    rf"(?i)\A(?:\d\d[- ]years?[- ]old\b|(?:{DIET}|{IDENTITIES}|night owl|(?:single|new) (?:mum|mom"
    r"|dad|parent|mother|father)|diabetic|coeliac|celiac|asthmatic|introvert)\Z)"
)
_MY_ALLERGY = re.compile(
    r"\b[Mm]y (?P<o>(?!food|bad|severe|own|new|old|only)[a-z]+) allergy "
    r"(?=is|makes|has|flares|keeps|acts)\b"
)
_MAY = re.compile(
    r"(?i)\b(?:as an?|since|after|before|now that|when|because|as I|new|old|former|previous|current"
    r"|here in|settled|settling|unpack\w*|arrived|ex|divorce|separation|break-?up|it(?:'s| is| was)"
    r"|not|back in|allergy|last day|little|tiny|small|own|lovely|last)\b"
)


def is_parted(sentence: str) -> bool:
    """Whether it takes a divorce or the like for granted."""
    return _PARTED.search(sentence) is not None


def parted(me: Person, words: Words) -> Candidate:
    text = f"{me.label} is no longer married"
    return Candidate("fact", me.thing, "married_to", SPOUSE, text, (words,), negated=True)


def asides_of(sentence: Sentence) -> Iterator[Clause]:
    """Clauses in full, each at the words that state it."""
    text = sentence.text
    if _MAY.search(text) is None:
        return
    full = spelt_out(text)
    for statement in _statements(full):
        yield Clause(statement, sentence.start, sentence.start + len(text))


def _statements(text: str) -> Iterator[str]:
    yield from _steps(text)
    for pattern, says in (
        (_NEW_HOME, "I moved to {}"),
        (_HERE, "I live in {}"),
        (_NEW_JOB, "I started a new job at {}"),
        (_OLD_JOB, "I left {}"),
        (_MY_ALLERGY, "I am allergic to {}"),
    ):
        found = pattern.search(text)
        if found is not None:
            yield says.format(next(name for name in found.groups() if name))
    if (home := _OLD_HOME.search(text)) is not None:
        yield f"I no longer live in {home['o']}"
    if (back := _BACK_IN.search(text)) is not None:
        yield f"I moved to {back['o']}"
    if (role := _AS_A.search(text)) and (role_in(role["o"]) or _KIND_OF_PERSON.search(role["o"])):
        yield f"I am a {role['o']}"
    if (other := _NOT_THEM.search(text) or _THEM_NOT.search(text)) is not None:
        yield f"{other['who']} {_WHERE.sub('works at ', other['rest'])}"
    if (cleft := _CLEFT.search(text)) is not None:
        yield f"{cleft['who']} {cleft['rest']} {cleft['o']}"


_WHERE = re.compile(r"\Ais at (?=[A-Z])")


def not_whom(text: str) -> str:
    """Who it is not, as in "it is my brother who works there, not me"; empty without one."""
    found = _THEM_NOT.search(text) or _NOT_THEM.search(text)
    return found["not"] if found else ""


def _spoken_of(before: str) -> str:
    """What "it" stands for: what was named last."""
    named = re.findall(r"\b(?:the|my|our) [\w-]+", before)
    return named[-1] if named else "it"


def _steps(text: str) -> Iterator[str]:
    """ "Since I sold the Volvo", "since moving to Graz", "back when I still smoked"."""
    since = _SINCE.search(text)
    if since is not None and PAST.get(since["verb"].lower()) in _STEPS:
        before = text[: since.start("who")]
        yield f"{since['who']} {_IT.sub(_spoken_of(before), since['rest'])}"
    if (gone := _GONE.search(text)) is not None:
        yield f"{gone['o']} {gone['how']}"
    doing = _DOING.search(text)
    if (
        doing is not None
        and not _OTHERS.search(text[: doing.start()])
        and (verb := ING.get(doing["verb"].lower())) in _STEPS
        and verb
        and not doing[0].lower().startswith("before")
    ):
        yield f"I {past(verb)} {doing['rest']}"
    back = _BACK_WHEN.search(text)
    if back is not None:
        verb = PAST.get((back["still"] or "").lower()) or back["used"]
        if back["still"] and back["still"].lower() == "had":
            verb = "have"
        if verb:
            yield f"I no longer {verb}{back['rest']}"


_PROFILE_CHARS = 240
_HEAD = re.compile(
    r"(?i)\A(?:(?:hi|hey|hello|so|ok|context|background|some background[\w ]*|about me"
    r"|a bit about me|quick intro|me)\b[\s,:!–-]*)*(?P<self>I am |I'm |i'm |im |my name is |me: )?"
)
_PARTS = re.compile(r"\s*(?:,(?! \d{4}\b)|;|/| - | – )\s*(?:and |but )?")
_FIGURE = r"(?:[€$£] ?\d[\d.,]*k?|\d[\d.,]*k)"
_KIN = "|".join(sorted((*RELATIONS, *PLURALS), key=len, reverse=True))
_COUNT = r"(?:an?|one|two|three|four|five|six|\d)"
_SAYS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), says)
    for pattern, says in (
        (r"(?P<o>\d{2})(?: ?(?:yo|y/o|years old|[mf]))?", "I am {o} years old"),
        (rf"(?P<o>{_FIGURE}(?: (?:a|per) (?:year|month)| gross| salary)?)", "I earn {o}"),
        (
            r"(?P<o>single|married|divorced|widowed|separated|retired|unemployed|freelance"
            r"|self-employed|left-handed|pregnant|(?:type [12] )?diabetic|asthmatic|autistic"
            rf"|dyslexic|coeliac|celiac|colou?r-?blind|(?:strict )?{DIET}|{NATION})",
            "I am {o}",
        ),
        (
            r"(?:now|currently)(?: living| based)? in (?P<o>(?-i:[A-Z])[\w-]+(?:"
            r" (?-i:[A-Z])\w+)?)\b.*",
            "I live in {o}",
        ),
        (r"no (?P<o>kids|children|pets|siblings)", "I do not have any {o}"),
        (rf"(?P<o>{_COUNT} (?:[\w-]+ ){{0,2}}(?:{_KIN}))", "I have {o}"),
        (
            r"(?P<o>(?:(?:originally )?from|born in|born and raised in|based in"
            r"|living in) (?-i:[A-Z])[\w -]{2,30}|(?:learning|studying|working) (?:to |at |for |as "
            r"|in )?\w[\w -]{2,40}|on [a-z][\w-]+ \d[\w ]*|allergic to [\w ]{3,30})",
            "I am {o}",
        ),
    )
)
_IN_PLACE = re.compile(r" (?:in|from|near) (?P<o>[A-Z][\w-]+(?: [A-Z][\w-]+)*)\Z")
_FIRST = re.compile(r"\A(?!I\b)[A-Z][a-z]+(?= )")
_OF_ANOTHER = re.compile(
    r"(?i)(?!(?:I|we)\b)(?:[\w'-]+ ){1,5}?(?:is|are|was|were|has|lives|works|drives|studies|runs)\b"
    r"|(?:he|she|they|his|her|their|[\w-]+'s)\b"
)
_LONE_PLACE = re.compile(r"[A-Z][\w-]{2,}(?: [A-Z]\w+)?")


def profile_of(sentence: str, *, first: bool) -> Iterator[str]:
    """Its parts as clauses, if it is such a list: two parts at least say something of somebody.

    Args:
        first: The sentence opens the message; a later one may be about a person named before.
    """
    if "," not in sentence or len(sentence) > _PROFILE_CHARS:
        return
    head = _HEAD.match(sentence)
    mine = head is not None and head["self"] is not None
    if not (first or mine):
        return
    parts = _PARTS.split(sentence[head.end() :] if head else sentence)
    if any(guards.asks(part) for part in parts):
        return
    # "Bob next door is a plumber, from Ghana": all that follows is said of Bob.
    others = next((at for at, part in enumerate(parts) if _OF_ANOTHER.match(part)), len(parts))
    stated = [
        list(_profile_statements(part)) if at < others else [] for at, part in enumerate(parts)
    ]
    named = bool(mine and _LONE_PLACE.fullmatch(parts[0]))
    known = sum(map(bool, stated))
    if known < 2 or known + named < len(parts) - 1 or not (stated[0] or named):
        return
    for at, clauses in enumerate(stated):
        yield from clauses
        lone = not clauses and at > 0 and known >= 2 and _LONE_PLACE.fullmatch(parts[at])
        if lone and parts[at].split()[0] not in NOT_NAMES:
            yield f"I live in {parts[at]}"


def _profile_statements(part: str) -> Iterator[str]:
    for pattern, says in _SAYS:
        if (found := pattern.fullmatch(part)) is not None:
            yield says.format(o=_FIRST.sub(lambda word: word[0].lower(), found["o"]))
            return
    role = role_in(part)
    if role is None or not part.startswith((role, f"a {role}", f"an {role}")):
        return
    yield f"I am {article(role)}"
    if (place := _IN_PLACE.search(part)) is not None:
        yield f"I live in {place['o']}"

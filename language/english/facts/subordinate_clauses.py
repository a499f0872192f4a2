"""What is told from aside: "now that I've left Siemens, what becomes of my pension?"

Each aside is put as a clause of its own, as whoever meant to tell it would have said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from language.english.facts.people import Person
from language.english.facts.sentences import Clause, Sentence, spelt_out
from language.english.facts.verbs import ING, PAST, past
from language.english.facts.vocabulary import DIET, IDENTITIES, role_in
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
    r"|break-?up)\b|\bmy ex[- ](?:husband|wife)\b|\b(?:the|my|our) divorce\b.{0,30}? (?:came "
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

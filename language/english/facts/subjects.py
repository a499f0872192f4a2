"""Whom a clause is about, also where its subject is left out: "sold the Polo", "midwife here"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from language.english.facts.people import ABSENT, RELATIONS, Company, Person
from language.english.facts.verbs import BASE, PAST, THIRD
from language.english.facts.vocabulary import (
    DIET,
    NAME,
    NUMBER_WORD,
    TITLED,
    is_first_name,
    may_be_name,
    role_in,
    titled_name,
)
from language.facts import Thing

_EAGER = r"(?:just|finally|recently|also|now|currently|still|really|already|only|absolutely)"
_DONE = re.compile(
    rf"(?i)\A(?:{_EAGER} )*(?:moved|got|had to|quit|started|bought|sold|passed|finished|turned"
    rf"|adopted|stopped|switched|joined|graduated|retired|left my|lost my|gave up|broke up|broke my"
    rf"|ran my|took up|signed up|became|came off|swapped|traded|ditched|packed in|rehomed|qualified"
    rf"|weighed|dropped out|handed in|took my|failed|booked|went (?=vegan|vegetarian|pescatarian"
    rf"|keto|freelance)|been (?=\w+ing |(?:married|single|together|with|at|in|allergic|sober"
    rf"|self-employed|{DIET})\b(?! (?:there|touch|love|bed|hospital|pain|it|the)\b)))\b(?! (?:it"
    rf"|that|this|you|your|to work|to be)\b)"
)
# "Picked the guitar up again": what was done to something of one's own, or to a named one.
_DONE_TO = re.compile(
    r"(?i)\A\w+ (?:my|our|the|an?|up|back|off|out|to|in|at|for|with|from|(?-i:[A-Z])\w+)(?= \w)"
    r"(?!(?:(?!\b(?:when|because|after|since)\b).)*\b(?:is|are|was|were|you|your)\b)"
)
_DOING = re.compile(
    rf"(?i)\A(?:{_EAGER} )*(?:living in|living with|staying with|working (?:at|for|as|in)"
    r"|taking (?=[\w-]+ \d|\d)|studying|learning|turning \d|flying to"
    r"|(?:moving|relocating|emigrating)(?: back| over| down| up| out| away)? (?:to|in)|going to"
    r"|getting married|expecting (?:a|our|my)|(?:re)?training (?:for|as)|planning to|planning (?:a"
    r"|our|my)"
    r"|hoping to|saving (?:up )?(?:for|to)|trying to|starting (?:at|a|my)|renting|sharing a"
    rf"|dating|using|doing (?={DIET})|wearing (?:glasses|contacts|hearing aids|braces)"
    rf"|writing (?:a|my)"
    r"|building (?:a|my)|teaching|eating|drinking)\b"
)
_STATE = re.compile(
    r"(?i)\A(?:(?:currently|still|now|newly|recently|happily|originally|no longer|not|never) )*"
    r"(?:married to|allergic to|based in|born|lactose intolerant|diabetic|fluent in"
    r"|type [12] diabetic|coeliac|celiac|asthmatic|autistic|dyslexic|epileptic|engaged to"
    r"|from [A-Z]\w+ originally|originally from|self-employed|at [A-Z]\w+(?= any more|\Z|,)"
    r"|in my (?:first|second|third|fourth|fifth|sixth|final|last) year (?:of|at)"
    r"|(?:an? )?(?:(?:big|huge|massive|really|much of a) )?fan of|(?:a )?sucker for|partial to"
    r"|(?:(?:really|very|so|quite|super) )?(?:into|keen on|fond of|hooked on|obsessed with) (?!this"
    r"|that|it|the|your)|\d{1,2} weeks pregnant"
    rf"|(?:retired|divorced|widowed|pregnant|{DIET})\Z)"
)
# After "my dad's a vicar", "retired" is said of him.
_LONE_STATE = re.compile(rf"(?i)(?:retired|divorced|widowed|pregnant|{DIET})")
_TASTE = re.compile(
    rf"(?i)\A(?:{_EAGER} )*(?:love|hate|adore|loathe|detest|dislike|enjoy|prefer|cannot (?:stand"
    rf"|bear)|do not (?:like|eat|drink|smoke|own|drive|speak)|work (?:(?:part|full)[- ]time )?(?:at"
    rf"|for|as)|live (?=in [A-Z])|have not (?:eaten|drunk|smoked|had))\b(?! (?:it|this|that|these"
    rf"|those|the|your|you|how|when|to|him|her|them|letters?|crimes?)\b)"
)
_HERE = re.compile(
    r"\A(?P<what>(?:an? )?[\w'+ -]{3,40}?)(?P<at> (?:at|for|in) [\w& ]+?)? here(?=\Z|,)"
)
_STILL_ONE = re.compile(r"(?i)(?:still|now|currently) an? (?P<what>[\w'+ -]{3,40})(?=\Z|,)")
# "At SAP as a test engineer", "on a Pixel now".
_WHEREABOUTS = re.compile(
    r"(?i)(?:(?:now|back|over|finally) )*(?:at (?-i:[A-Z])[\w&.-]+(?: as an? [\w ]+)?"
    r"|on an? [\w-]+ now|in (?-i:[A-Z])[\w-]+(?: (?-i:[A-Z])\w+)? since .+)\Z"
)
_MEDICINE = re.compile(r"(?i)\A(?:now )?on [a-z][\w-]+ \d")
# "Living in Rome is expensive": the verb is what it is about.
_IS_SUBJECT = re.compile(
    r"\b(?:is|are|was|were|makes?|made|seems?|has|can|should|would|will|feels?|sounds?|costs?"
    r"|takes|keeps|drives|looks?|helps?|requires|means|you|your)\b"
)

_AND_SO_ON = re.compile(r",? (?:and|but) (?=(?:the|it|my|they|she|he)\b)")


def filled_in(text: str) -> str | None:
    """What is said of the speaker, with its verb; None where nobody was left out."""
    first = text.partition(" ")[0].lower().rstrip(",")
    if first in PAST and first not in BASE and _DONE_TO.match(text):
        return text
    if _DONE.match(text):
        return re.sub(r"\A((?:\w+ )*?)(?=been )", r"\1have ", text, flags=re.IGNORECASE)
    if _STATE.match(text) or _MEDICINE.match(text) or _WHEREABOUTS.match(text):
        return f"am {text[:1].lower()}{text[1:]}"
    one = _STILL_ONE.match(text) or _HERE.match(text)
    if one is not None:
        return _as_one(one["what"], one.groupdict().get("at") or "")
    if _IS_SUBJECT.search(_AND_SO_ON.split(text)[0]):
        return None
    if _DOING.match(text):
        return f"am {text}"
    return text if _TASTE.match(text) else None


def _as_one(what: str, at: str) -> str | None:
    """ "Midwife here" is one; "my sister here" is not."""
    what = re.sub(r"\A(?:an? )", "", what)
    if re.fullmatch(DIET, what, re.IGNORECASE):
        return f"am {what}"
    if role_in(what) is None or what.lower().startswith(("the ", "my ", "our ")):
        return None
    return f"am a {what if what[:2].isupper() else what[0].lower() + what[1:]}{at}"


_OPENERS = re.compile(
    r"(?i)\A(?:(?:hi|hey|hello|hiya|ok|okay|so|well|yes|yeah|yep|yup|oh|ah|aw|btw|by the way|also"
    r"|and|but|plus|anyway|honestly|fyi|just so you know|for context|for reference|some context"
    r"|context|background|as I (?:mentioned|said)(?: before| earlier)?|as you know|in fact"
    r"|to be honest|tbh|thanks|thank you|great|cool|wow|sure|hmm|um|uh|right|fun fact|quick update"
    r"|update|good news|bad news|big news|sad news|guess what|personally|unfortunately|luckily"
    r"|finally|fortunately|sadly|happily|because|cause|since(?= (?:I|we|my|our)\b)|although|though"
    r"|even though|while|whereas|as|then|now that|given that|now|currently|these days|nowadays"
    r"|at the moment|recently|lately|I mean|you see|look|listen|remember that|remember"
    r"|keep in mind(?: that)?|do not forget(?: that)?|note that|bear in mind(?: that)?|know that"
    r"|please note(?: that)?"
    r"|correct"
    r"|you know|yet|still|actually|basically|long story short|ps|p\.s\.|lol|haha|funny|turns out"
    r"|it turns out(?: that)?|thing is|the thing is|my problem is(?: that)?"
    r"|I (?:(?:just )?(?:found out|learned|learnt)(?: that)?(?= (?:I|my|we)\b)|told you|said"
    r"|mentioned|already said|already told you|forgot to (?:say|mention)|should (?:mention|add|say)"
    r"|have to (?:say|admit)|must (?:say|admit)|admit|also|think I should mention|realised|realized"
    r"|can confirm|forgot to tell you)(?: earlier| before)?(?: that)?|no(?! longer\b)|nope|sorry"
    r"|correction|oops|wait|I meant|scratch that|my mistake|my bad|typo|wrong|I got that wrong"
    r"|I misspoke|I was (?:wrong|mistaken)(?=[:,;])|ever since|after all|in case you wonder"
    r"|a bit about me|about me|me|or rather"
    r"|rather|edit|good morning|good evening|long night|new here|ngl|not gonna lie|quick one"
    r"|heads up|for the record|in other news|so yeah)(?=[\s,:!.;—–-])[\s,:!.;—–-]*)"
)
_CORRECTS = re.compile(
    r"(?i)\b(?:no|nope|sorry|correction|oops|wait|I meant|I mean|scratch that|my mistake"
    r"|my bad|typo|wrong|I got (?:that|it) wrong|I misspoke|actually|or rather|edit)\b"
)
_TAKES_BACK = re.compile(
    r"(?i)\A(?:no,? wait|no,? sorry|sorry,? (?:wrong|no|I meant?|it is|my|I (?:live|work|am))|wrong"
    r"|correction|oops|scratch that|I misspoke|I meant)\b|\bI (?:got|had) (?:that|it|this) wrong\b"
    r"|\bI was mistaken\b|\bmy mistake\b|\bnot [A-Z]\w+, (?:but|it is)\b"
)
_LEAD = re.compile(
    r"(?i)\A(?P<lead>(?:in|on|at|since|for|last|next|every|each|yesterday|today|tomorrow|tonight"
    r"|this|during|around|back in|until|from|after|before|over|by|two|three|a few|one|once|twice"
    r"|most|before|starting|as of|\d+)\b[^;?!]{0,60}?),?\s+(?=(?:I|we|User|he|she)\s)"
)
FRAGMENT = re.compile(
    r"(?i)\A(?:in|on|at|since|for|last|next|every|each|yesterday|today|tomorrow|tonight"
    r"|this|during|around|back in|until|from|over|by|two|three|a few|one|once|twice"
    r"|most|starting|as of|\d+)\b(?!.*\b(?:I|you|is|are|was)\b)"
)
_SELF = re.compile(r"\A(?:I|[Ww]e|User|[Tt]he user)\b(?!')\s*(?:(?:both|all|two)\s+)?")
_SELF_AND = re.compile(
    rf"\A(?:[Mm]y [\w\s-]{{2,40}}?|{NAME}) and I\b\s*|\AI and my [\w-]+\s+"
    rf"|\AMe and [\w\s]{{2,30}}?(?= (?:live|work|moved|are|have|went|got)\b)"
)
# "We are three": how many, not how old.
_HOW_MANY = re.compile(rf"[Ww]e are (?:now |only )?(?:{NUMBER_WORD}|\d+)(?=\Z|[ ,.;])")
_PRONOUN = re.compile(r"(?i)\A(?P<who>he|she)\b\s*")
_NAMED = re.compile(rf"\A(?P<name>{NAME})\b(?!')(?:\s+and (?!I\b)\w+)?,?\s+")
# "Nina from the choir": not the Nina who is known already.
_NAMED_FROM = re.compile(
    r"\A(?P<name>[A-Z][\w-]+ from (?:the|my|our) [a-z][\w-]+(?: [a-z][\w-]+)?) "
    r"(?=(?:is|has|was|works|lives|moved|became|got|married|started)\b)"
)


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
    text, opening = (text, "") if _STILL_ONE.match(text) else without_openers(text)
    if re.search(r"\b(?:I|we)\b\Z", opening.strip()):
        return None
    lead = _LEAD.match(text)
    before = lead["lead"] if lead else ""
    if lead:
        text, _ = without_openers(text[lead.end() :])
    found = (
        _self(text, company)
        or _passive(text, company)
        or _theirs(text, company)
        or _left_out(text, company)
        or _known(text, company)
    )
    if found is None:
        return None
    person, rest, stranger = found
    return Subject(person, rest, before, corrects(opening), stranger)


_Found = tuple[Person, str, bool]


# What others do to somebody, as what happens to them: "they fired me from Acme".
_DONE_TO_ME = re.compile(
    r"(?i)\A(?P<who>they|he|she|(?:my|the) [\w ]{2,30}?|[A-Z][\w&.]+(?: [A-Z][\w&.]+)?) (?:have "
    r"|has |had |just |finally |only )*(?P<verb>fired|sacked|hired|promoted|diagnosed|laid|let"
    r"|made(?= me (?:redundant|an? ))) me\b(?P<rest>.*)\Z"
)


def _passive(text: str, company: Company) -> _Found | None:
    done = _DONE_TO_ME.match(text) if " me" in text else None
    if done is None:
        return None
    by = (
        f" by {done['who']}"
        if done["verb"].lower() == "hired" and done["who"][:1].isupper()
        else ""
    )
    return company.me, f"was {done['verb']}{by}{done['rest']}", False


def _self(text: str, company: Company) -> _Found | None:
    if _HOW_MANY.match(text):
        return None
    said = _SELF.match(text) or _SELF_AND.match(text)
    return (company.me, text[said.end() :], False) if said else None


def _theirs(text: str, company: Company) -> _Found | None:
    for mention in company.mentions(text[:120]):
        # "My brother's wife works there" is about her.
        if mention.start == 0 and not text[: mention.end].endswith("'s"):
            return mention.person, text[mention.end :].lstrip(" ,)"), False
    return None


def _left_out(text: str, company: Company) -> _Found | None:
    of_either = _LONE_STATE.fullmatch(text) or _STILL_ONE.match(text)
    if company.speaks_of_another and of_either:
        return None
    said = filled_in(text)
    if said:
        return company.me, said, False
    if not company.speaks_of_another or text.partition(" ")[0].lower() not in THIRD:
        return None
    person = company.they("she") or company.they("he")
    return (person, text[:1].lower() + text[1:], False) if person else None


def _known(text: str, company: Company) -> _Found | None:
    pronoun = _PRONOUN.match(text)
    if pronoun is not None:
        person = company.they(pronoun["who"])
        if person is None:
            return None
        absent = person.thing.name in ABSENT
        unknown = not (person.role or absent) and company.named(person.thing.name) is None
        return person, text[pronoun.end() :], unknown
    titled = TITLED.match(text)
    if titled is not None and (name := titled_name(titled)) is not None:
        title = titled["title"].lower()
        role = title if title in RELATIONS else ""
        person = company.named(name) or Person(Thing(name, "person"), name, role)
        return person, text[titled.end() :].lstrip(), False
    named = _NAMED_FROM.match(text) or _NAMED.match(text)
    if named is None or not may_be_name(named["name"]):
        return None
    name = named["name"]
    # "Knocked my time down": a verb that is in no list.
    if role_in(name) is not None or (name.endswith("ed") and not is_first_name(name)):
        return None
    known = company.named(name)
    if known is not None:
        return known, text[named.end() :], False
    # Whoever has a first name alone is somebody around; full names are of the famous too.
    return Person(Thing(name, "person"), name), text[named.end() :], not is_first_name(name)

"""What people in a hurry leave out: "sold the Polo", "taking 20 mg", "midwife here"."""

from __future__ import annotations

import re

from language.english.facts.roles import DIET, role_in

_EAGER = r"(?:just|finally|recently|also|now|currently|still|really|already|only|absolutely)"
_DONE = re.compile(
    rf"\A(?:{_EAGER} )*(?:moved|got|had to|quit|started|bought|sold|passed|finished|turned|adopted"
    r"|stopped|switched|joined|graduated|retired|left my|lost my|gave up|broke up|broke my|ran my"
    r"|took up|signed up|became|came off|swapped|traded|ditched|packed in|rehomed|qualified|weighed"
    r"|dropped out|handed in|took my|failed|booked|been (?=\w+ing ))\b"
    r"(?! (?:it|that|this|you|your|to work|to be)\b)",
    re.IGNORECASE,
)
_DOING = re.compile(
    rf"\A(?:{_EAGER} )*(?:living in|living with|staying with|working (?:at|for|as|in)"
    r"|taking (?=[\w-]+ \d|\d)|studying|learning|turning \d|moving (?:to|in)|flying to|going to"
    r"|getting married|expecting (?:a|our|my)|training (?:for|as)|planning to|planning (?:a|our|my)"
    r"|hoping to|saving (?:up )?(?:for|to)|trying to|starting (?:at|a|my)|renting|sharing a"
    r"|dating|using|writing (?:a|my)|building (?:a|my)|teaching|eating|drinking)\b",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"\A(?:(?:currently|still|now|newly|recently|happily|originally|no longer|not|never) )*"
    r"(?:married to|allergic to|based in|born|lactose intolerant|diabetic|fluent in"
    r"|type [12] diabetic|coeliac|celiac|asthmatic|autistic|dyslexic|epileptic|engaged to"
    r"|from [A-Z]\w+ originally|originally from|self-employed|at [A-Z]\w+(?= any more|\Z)"
    r"|a(?: big| huge| massive)? fan of|much of a fan of|really a fan of|\d{1,2} weeks pregnant"
    rf"|(?:retired|divorced|widowed|pregnant|{DIET})\Z)",
    re.IGNORECASE,
)
_TASTE = re.compile(
    rf"\A(?:{_EAGER} )*(?:love|hate|adore|loathe|detest|dislike|enjoy|prefer|cannot (?:stand|bear)"
    r"|do not (?:like|eat|drink|smoke|own|drive|speak))\b"
    r"(?! (?:it|this|that|these|those|the|your|you|how|when|to|him|her|them|letters?|crimes?)\b)",
    re.IGNORECASE,
)
_HERE = re.compile(r"\A(?P<what>(?:an? )?[\w'+ -]{3,40}?)(?P<at> (?:at|for|in) [\w& ]+?)? here\Z")
_MEDICINE = re.compile(r"\A(?:now )?on [a-z][\w-]+ \d", re.IGNORECASE)
# "Living in Rome is expensive": the verb is what it is about.
_IS_SUBJECT = re.compile(
    r"\b(?:is|are|was|were|makes?|made|seems?|has|can|should|would|will|feels?|sounds?|costs?"
    r"|takes|keeps|drives|looks?|helps?|requires|means|you|your)\b"
)

# What such a clause begins with, unless it ends in "here"; most do not.
_FIRST = frozenset(
    "just finally recently also now currently still really already only absolutely moved got had"
    " quit"
    " started bought sold passed finished turned adopted stopped switched joined graduated retired"
    " left lost gave broke ran took signed became came swapped traded ditched packed rehomed"
    " qualified weighed dropped handed failed booked been living staying working taking studying"
    " learning turning moving flying going getting expecting training planning hoping saving trying"
    " starting renting sharing dating using writing building teaching eating drinking newly happily"
    " originally no not never married allergic based born lactose diabetic fluent type coeliac"
    " celiac"
    " asthmatic autistic dyslexic epileptic engaged from self-employed at a much divorced widowed"
    " pregnant vegetarian vegan pescatarian retired love hate adore loathe detest dislike enjoy"
    " prefer cannot do on strict mostly 4 5 6 7 8 9".split()
) | {str(week) for week in range(4, 43)}


def filled_in(text: str) -> str | None:
    """What is said of the speaker, with its verb; None where nobody was left out."""
    first = text.partition(" ")[0].lower().rstrip(",")
    if first not in _FIRST and not text.endswith(" here"):
        return None
    if _DONE.match(text):
        return re.sub(r"\A((?:\w+ )*)(?=been \w+ing )", r"\1have ", text, flags=re.IGNORECASE)
    if _STATE.match(text) or _MEDICINE.match(text):
        return f"am {text[:1].lower()}{text[1:]}"
    here = _HERE.match(text)
    if here is not None:
        return _as_one(here["what"], here["at"] or "")
    if _IS_SUBJECT.search(text):
        return None
    if _DOING.match(text):
        return f"am {text}"
    return text if _TASTE.match(text) else None


def _as_one(what: str, at: str) -> str | None:
    """ "Midwife here" is one; "my sister here" is not."""
    what = re.sub(r"\A(?:an? )", "", what)
    if re.fullmatch(DIET, what, re.IGNORECASE):
        return f"am {what}"
    return f"am a {what}{at}" if role_in(what) else None

"""Who somebody is, as a list: "I'm Tove, 52, social worker in Bergen, divorced, two sons"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from language.english.facts.people import NOT_NAMES, PLURALS, RELATIONS
from language.english.facts.phrasing import article
from language.english.facts.roles import DIET, NATION, role_in

_MOST_CHARS = 240
_HEAD = re.compile(
    r"\A(?:(?:hi|hey|hello|so|ok|context|background|some background[\w ]*|about me|a bit about me"
    r"|quick intro|me)\b[\s,:!–-]*)*(?P<self>I am |I'm |i'm |im |my name is |me: )?",
    re.IGNORECASE,
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
            r"(?P<o>(?:(?:originally )?from|born in|born and raised in|based in|living in)"
            r" (?-i:[A-Z])[\w -]{2,30}"
            r"|(?:learning|studying|working) (?:to |at |for |as |in )?\w[\w -]{2,40}"
            r"|on [a-z][\w-]+ \d[\w ]*|allergic to [\w ]{3,30})",
            "I am {o}",
        ),
    )
)
_IN = re.compile(r" (?:in|from|near) (?P<o>[A-Z][\w-]+(?: [A-Z][\w-]+)*)\Z")
_FIRST = re.compile(r"\A(?!I\b)[A-Z][a-z]+(?= )")
_LONE_PLACE = re.compile(r"[A-Z][\w-]{2,}(?: [A-Z]\w+)?")


def profile_of(sentence: str, *, first: bool) -> Iterator[str]:
    """Its parts as clauses, if it is such a list: two parts at least say something of somebody.

    Args:
        first: The sentence opens the message; a later one may be of whom was named before.
    """
    if "," not in sentence or len(sentence) > _MOST_CHARS:
        return
    head = _HEAD.match(sentence)
    mine = head is not None and head["self"] is not None
    if not (first or mine):
        return
    parts = _PARTS.split(sentence[head.end() :] if head else sentence)
    told = [list(_told(part)) for part in parts]
    named = bool(mine and _LONE_PLACE.fullmatch(parts[0]))
    known = sum(map(bool, told))
    if known < 2 or known + named < len(parts) - 1 or not (told[0] or named):
        return
    for at, clauses in enumerate(told):
        yield from clauses
        lone = not clauses and at > 0 and known >= 2 and _LONE_PLACE.fullmatch(parts[at])
        if lone and parts[at].split()[0] not in NOT_NAMES:
            yield f"I live in {parts[at]}"


def _told(part: str) -> Iterator[str]:
    for pattern, says in _SAYS:
        if (found := pattern.fullmatch(part)) is not None:
            yield says.format(o=_FIRST.sub(lambda word: word[0].lower(), found["o"]))
            return
    role = role_in(part)
    if role is None or not part.startswith((role, f"a {role}", f"an {role}")):
        return
    yield f"I am {article(role)}"
    if (place := _IN.search(part)) is not None:
        yield f"I live in {place['o']}"

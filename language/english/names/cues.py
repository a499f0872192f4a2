"""The company a name keeps: what stands before and after it that says what it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KIN = (
    r"(?:friend|buddy|sister|brother|mom|mum|mother|dad|father|son|daughter|wife|husband|partner"
    r"|boyfriend|girlfriend|fianc[eé]e?|cousin|uncle|aunt|niece|nephew|grandma|grandpa|grandmother"
    r"|grandfather|boss|manager|colleague|coworker|co-worker|teammate|roommate|neighbou?r|teacher"
    r"|professor|doctor|therapist|dentist|coach|trainer|mentor|tutor|client|landlord|dog|cat|puppy"
    r"|kitten|pup|kitty|horse|rabbit|hamster|parrot|pet|baby|toddler|bestie|pal)"
)
_BEFORE_PERSON = re.compile(
    rf"(?:\b{_KIN}s?,?(?: is| was|'s)?(?: named| called|:)?"
    r"|\b(?:named|name is|name's|called) (?:him|her|it)?"
    r"|\b(?:Dr|Mr|Mrs|Ms|Prof|Professor|Aunt|Uncle|Coach|Sister|Brother|Grandma|Grandpa|Dear)\.?"
    rf"|\bmy name is|\b{_KIN}s? (?:and|&)) ?$",
    re.IGNORECASE,
)
_BEFORE_PLACE = re.compile(
    r"\b(?:(?:live|lives|lived|living|born|based|located|stayed|staying|vacation|vacationing|holiday"
    r"|apartment|flat|house|grew up|hometown|arrived) (?:in|at|near|to)"
    r"|(?:move|moves|moved|moving|travel|traveled|travelled|traveling|travelling|trip|trips|flight"
    r"|flights|fly|flew|flying|drive|drove|driving|relocate|relocated|relocating"
    r"|tour|road trip) (?:to|from|around|through)"
    r"|(?:city|town|village|island|state) of) $",
    re.IGNORECASE,
)
_BEFORE_EMPLOYER = re.compile(
    r"\b(?:(?:work|works|worked|working|job|position|internship|intern|role|interview"
    r"|interviewing) at|employed by|(?:work|works|worked|working) for) $",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"(?:^|[.!?,\n]\s*)(?:hey|hi|hello|thanks|thank you|wow|yeah|yep|sorry|congrats|bye|oh"
    r"|good (?:morning|evening|night)|dear|absolutely|totally|awesome|cool|aw+|you too)"
    r"[ ,]+(?:there,? )?$",
    re.IGNORECASE,
)
_AFTER_PERSON = re.compile(
    r"(?:['’]s (?:birthday|house|place|wedding|mom|dad|sister|brother|wife|husband|party|baby"
    rf"|family|room)\b|,? who\b| and I\b| said\b| says\b| told\b| thinks\b| asked\b"
    rf"|, my (?:\w+ )?{_KIN}\b)"
)


def is_greeted(before: str, after: str) -> bool:
    """Whether the name is spoken to: "Thanks, Ann!", "… you too, Ann!"."""
    if _GREETING.search(before):
        return after[:1] in ("!", "?", ",", ".", "")
    return before.endswith(", ") and after[:1] in ("!", "?")


def cues(before: str, after: str) -> Iterator[str]:
    """What the words around a name say it is; "someone" is a weaker "person"."""
    if is_greeted(before, after) or _BEFORE_PERSON.search(before):
        yield "person"
    if _AFTER_PERSON.match(after):
        yield "someone"
    if _BEFORE_PLACE.search(before):
        yield "place"
    if _BEFORE_EMPLOYER.search(before):
        yield "organisation"


def opens_sentence(before: str) -> bool:
    """Whether what follows has its capital only for standing at the beginning."""
    trimmed = before.rstrip(" \"“'(*•")
    # Beyond the letters and signs of any alphabet there are only pictures.
    return not trimmed or trimmed[-1] in ".!?:;\n-–—•*|)…" or trimmed[-1] > "\u2300"

"""Traits: what kind of thing a message says, whatever it is about.

A message that asks, greets or thanks is close to a question in its words and yet answers nothing;
one that names a day, a place, a number or a reason mostly does. A few such traits, read once when
a message is mined, tell the two apart.
"""

from __future__ import annotations

import re
from enum import IntFlag

from language.english.asking import only_asks, only_quotes, takes_up

_READ_AT_EITHER_END = 2_000  # Characters; a pasted page is of one kind throughout.


class Trait(IntFlag):
    """As stored, one bit each: a value must never come to mean something else."""

    ENDS_ASKING = 1
    MOSTLY_ASKS = 2
    NUMBER = 4
    TIME = 8
    NAME = 16
    NAMES = 32  # Two or more.
    SELF = 64
    MUCH_SELF = 128  # Three or more.
    PLACE = 256
    REASON = 512
    GREETS = 1024
    ONLY_ASKS = 2048
    ONLY_QUOTES = 4096  # What is in the palace already.
    TAKES_UP = 8192  # It only asks, about what was just said.


# Alone, that is: what else it says is all in the palace, or asked of it.
TELLS_NOTHING = Trait.ONLY_ASKS | Trait.ONLY_QUOTES

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_PRESENT = {
    Trait.NUMBER: re.compile(
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|"
        r"fifty|hundred|thousand|once|twice|couple|dozen|half)\b",
        re.IGNORECASE,
    ),
    Trait.TIME: re.compile(
        r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|since|week|weekend|month|year|day|"
        r"morning|evening|night|january|february|march|april|may|june|july|august|september|"
        r"october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|"
        r"\d{4}|recently|just|soon)\b",
        re.IGNORECASE,
    ),
    Trait.PLACE: re.compile(
        r"\b(?:in|at|to|from|near) (?:the )?[A-Z][a-z]+|\b(?:at|to|in) (?:a|the|my|our) \w+"
    ),
    Trait.REASON: re.compile(
        r"\b(?:because|since|so that|in order|helps? me|inspired?|motivat\w+|reason|feel|felt|"
        r"love|want)\b",
        re.IGNORECASE,
    ),
    Trait.GREETS: re.compile(
        r"^\s*(?:hey|hi|hello|wow|thanks|thank you|oh|yeah|yep|sure|awesome|great|cool|congrats|"
        r"bye|take care|ok|okay|sounds|absolutely|definitely|no problem|nice|that['’]s)\b",
        re.IGNORECASE,
    ),
}
# Within a sentence only: the first word of one is capitalised whatever it is.
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_SELF = re.compile(r"\b(?:I|my|we|our|me)\b")


def read_traits(text: str) -> Trait:
    """The traits of a message; of a long one as its first and last two thousand characters show."""
    idle = _idle(text)
    if len(text) > 2 * _READ_AT_EITHER_END:
        text = f"{text[:_READ_AT_EITHER_END]}\n{text[-_READ_AT_EITHER_END:]}"
    found = _asking(text) | idle
    for trait, pattern in _PRESENT.items():
        if pattern.search(text):
            found |= trait
    names, selves = len(_NAME.findall(text)), len(_SELF.findall(text))
    found |= Trait.NAME if names else Trait(0)
    found |= Trait.NAMES if names > 1 else Trait(0)
    found |= Trait.SELF if selves else Trait(0)
    return found | (Trait.MUCH_SELF if selves > 2 else Trait(0))


def _idle(text: str) -> Trait:
    """Of the whole text: what stands in its middle may tell something."""
    if only_quotes(text):
        return Trait.ONLY_QUOTES
    if not only_asks(text):
        return Trait(0)
    return Trait.ONLY_ASKS | (Trait.TAKES_UP if takes_up(text) else Trait(0))


def _asking(text: str) -> Trait:
    if "?" not in text:
        return Trait(0)
    sentences = _SENTENCE_END.split(text.strip())
    asked = sum(len(each.split()) for each in sentences if each.endswith("?"))
    found = Trait.ENDS_ASKING if sentences[-1].endswith("?") else Trait(0)
    return found | (Trait.MOSTLY_ASKS if 2 * asked > len(text.split()) else Trait(0))

"""Asking: messages that tell nothing, because they only ask, or only quote what is kept already."""

from __future__ import annotations

import re

# Longer messages explain themselves, and so tell something.
_LONGEST = 400
# Words of a sentence beside the question that tell nothing: "Hi there!", "Thanks a lot."
_IDLE_WORDS = 3

_SENTENCE_END = re.compile(r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bSt\.)(?<=[.!?])\s+|\n+")
_WH = r"(?:what|which|when|where|who|whom|whose|why|how)(?:'s|'re|'d)?"
_AUXILIARY = (
    r"(?:do|does|did|is|are|am|was|were|has|have|had|can|could|will|would|shall|should|may|might)"
)
_SUBJECT = r"(?:I|we|you|he|she|it|they|there|my|our|your|his|her|its|their|the|this|that|any)"
_REQUEST = (
    r"(?:please |can you |could you |would you |will you )?"
    r"(?:(?:tell|remind|show|ask) (?:me|us)|(?:i|we)(?:'d| would) (?:like|love) to know"
    r"|(?:i|we) (?:want|need) to know|(?:i|we)(?: am|'m|'re| are)? wonder(?:ing)?|list|name)"
)
# What may stand before a question: "By the way, …", "In May 2023, …", "In which …".
_LEAD = (
    r"(?:(?!(?:i|i'm|i've|i'd|my|me|we|our|us)\b)[\w'-]+[ ]){0,7}?"
    r"(?:(?!(?:i|me|us)\b)[\w'-]+[,:][ ]+)"
)
_PREPOSITION = (
    r"(?:in|on|at|by|for|from|of|to|with|about|around|after|before|during|under|until|and|so|but"
    r"|then|also)[ ]+(?:\w+[ ]+){0,2}?"
)
_ASKS = re.compile(
    rf"(?:{_LEAD})?(?:(?:{_PREPOSITION})?{_WH}|{_AUXILIARY}(?:n't)?|{_REQUEST})\b", re.IGNORECASE
)
# Without a question mark the order of the words has to show it.
_ASKS_UNMARKED = re.compile(
    rf"(?:{_LEAD})?(?:{_WH} {_AUXILIARY}\b|{_AUXILIARY} {_SUBJECT}\b|{_REQUEST} {_WH}\b)",
    re.IGNORECASE,
)
# Who asks tells something of themselves besides: "…, I'm allergic", "did you know I moved".
_TELLS_BESIDE = re.compile(
    r"(?:[,;:(–—-] ?|\b(?:and|but|because|since|as|though|although|if|now that|given that"
    r"|you know(?: that)?|you believe|tell you(?: that)?|told you(?: that)?|you hear(?: that)?)\s+)"
    r"(?:i|we)(?:'m|'ve|'d|'re)?\b(?! (?:want|need) to know)"
    r"|\b(?:my|our)\s+\w+(?:\s\w+)?\s(?-i:[A-Z][a-z]+)",
    re.IGNORECASE,
)
# "Hmm, so how …", "Wow! What …": a question within a talk, about what was just said.
_TAKES_UP = re.compile(
    r"\W*(?:hm+|ok(?:ay)?|oh|ah|wow|whoa|cool|great|nice|awesome|amazing|yeah|yes|yep|no|nope|so|and"
    r"|but|or|right|sure|thanks|thank you|haha|well|that['’]s|you)\b",
    re.IGNORECASE,
)
_POINTER_AT_END = re.compile(r"\[§ W-\d+/R-\d+/D-\d+\]\s*$")


def only_asks(text: str) -> bool:
    """Whether each sentence asks and none tells; "I'm allergic to nuts, what can I eat?" tells."""
    if len(text) > _LONGEST:
        return False
    asked = False
    for sentence in _SENTENCE_END.split(text.replace("’", "'").strip()):
        if _asks(sentence):
            if _TELLS_BESIDE.search(sentence):
                return False
            asked = True
        elif len(sentence.split()) > _IDLE_WORDS:
            return False
    return asked


def _asks(sentence: str) -> bool:
    opening = _ASKS if sentence.endswith("?") else _ASKS_UNMARKED
    return opening.match(sentence) is not None


def takes_up(text: str) -> bool:
    """Whether it opens by taking up what was just said, as a question within a talk does."""
    return _TAKES_UP.match(text) is not None


def only_quotes(text: str) -> bool:
    """Whether it is quotations alone, each with the pointer of the drawer it is from.

    One line may introduce them.
    """
    if "[§ W-" not in text:
        return False
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    quoted = [part for part in parts if part.startswith(">")]
    others = [part for part in parts if not part.startswith(">")]
    introduced = len(others) <= 1 and all("\n" not in part for part in others)
    return introduced and bool(quoted) and all(_POINTER_AT_END.search(part) for part in quoted)

"""Time expressions as they are written: "last Tuesday", "on 5 March", "two weeks ago"."""

from __future__ import annotations

import re

_NUMBER = (
    r"(?:\d{1,3}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|twelve"
    r"|a couple of|a few|several)"
)
_UNIT = r"(?:day|night|week|weekend|fortnight|month|year|decade)s?"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    # "may" and "march" are words as well.
    r"(?:january|february|(?-i:March|May)|april|june|july|august|september|october|november"
    r"|december|(?-i:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec))\b\.?"
)
_SEASON = r"(?:spring|summer|autumn|winter|fall)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"

_TIME = re.compile(
    rf"\b(?:"
    rf"(?:the\s)?day\s(?:before\syesterday|after\stomorrow)"
    rf"|(?:yesterday|today|tomorrow|tonight)(?:\s(?:morning|afternoon|evening|night))?"
    rf"|(?:last|next|this(?:\spast)?|the\sfollowing|the\sother|past)\s"
    rf"(?:{_WEEKDAY}s?|(?:mon|tues|tue|wed|thurs|thu|fri|sat|sun)\b|{_MONTH}|{_SEASON}"
    rf"|weekend|week|month|year|night|evening|morning)"
    rf"(?:\s(?:morning|afternoon|evening|night))?"
    rf"|(?:\d{{1,2}}|a few|several)\s(?:minute|hour)s\sago"
    rf"|{_NUMBER}\s{_UNIT}\s(?:ago|from\snow)"
    rf"|in\s{_NUMBER}\s{_UNIT}"
    rf"|(?:since|in|by|until|back\sin|early|late)\s(?:the\s)?(?:19|20)\d\d"
    rf"|{_DAY}\s(?:of\s)?{_MONTH}(?:,?\s(?:19|20)\d\d)?"
    rf"|{_MONTH}\s{_DAY}\b(?!:)(?:,?\s(?:19|20)\d\d)?"
    rf"|{_MONTH},?\s(?:19|20)\d\d"
    rf"|(?:19|20)\d\d-\d\d-\d\d"
    rf"|\d{{1,2}}/\d{{1,2}}/(?:19|20)?\d\d"
    rf"|on\s{_WEEKDAY}s?|every\s{_WEEKDAY}"
    rf"|in\s(?:early\s|mid-|late\s)?(?:{_SEASON}\b|(?-i:January|February|March|April|May|June"
    rf"|July|August|September|October|November|December)\b)"
    rf")(?!\w)",
    re.IGNORECASE,
)
# What is longer is pasted matter or an essay, full of dates that are nobody's.
_READ_CHARS = 1500
# Nearly every time expression holds one of these; most messages hold none.
_MAYBE = re.compile(
    r"day|week|month|year|night|\d|last|next|ago|in (?:early|mid|late|the|[A-Z])|tomorrow|[a-z]er\b"
)


def times(prose: str) -> tuple[str, ...]:
    """Each expression once, in the order of the text, as written."""
    read = prose[:_READ_CHARS]
    if not _MAYBE.search(read):
        return ()
    found = (" ".join(match.group().split()) for match in _TIME.finditer(read))
    return tuple(dict.fromkeys(time.rstrip(".") for time in found))

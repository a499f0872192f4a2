"""AAAK tags of a message: names, everyday things, and times, those resolved that are certain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from language.english import stem, stems, words
from language.english.dates import Period, read_time
from language.english.topics.phrases import is_english
from language.extraction import EntityFound
from language.transcripts import Turn

Tags = Mapping[str, tuple[str, ...]]

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
    rf"(?i)\b(?:(?:the\s)?day\s(?:before\syesterday|after\stomorrow)|(?:yesterday|today|tomorrow"
    rf"|tonight)(?:\s(?:morning|afternoon|evening|night))?|(?:last|next|this(?:\spast)?"
    rf"|the\sfollowing|the\sother|past)\s(?:{_WEEKDAY}s?|(?:mon|tues|tue|wed|thurs|thu|fri|sat"
    rf"|sun)\b|{_MONTH}|{_SEASON}|weekend|week|month|year|night|evening|morning)(?:\s(?:morning"
    rf"|afternoon|evening|night))?|(?:\d{{1,2}}|a few|several)\s(?:minute|hour)s\sago"
    rf"|{_NUMBER}\s{_UNIT}\s(?:ago|from\snow)|in\s{_NUMBER}\s{_UNIT}|(?:since|in|by|until|back\sin"
    rf"|early|late)\s(?:the\s)?(?:19|20)\d\d|{_DAY}\s(?:of\s)?{_MONTH}(?:,?\s(?:19|20)\d\d)?"
    rf"|{_MONTH}\s{_DAY}\b(?!:)(?:,?\s(?:19|20)\d\d)?|{_MONTH},?\s(?:19|20)\d\d|(?:19"
    rf"|20)\d\d-\d\d-\d\d|\d{{1,2}}/\d{{1,2}}/(?:19|20)?\d\d|on\s{_WEEKDAY}s?|every\s{_WEEKDAY}"
    rf"|in\s(?:early\s|mid-|late\s)?(?:{_SEASON}\b|(?-i:January|February|March|April|May|June|July"
    rf"|August|September|October|November|December)\b))(?!\w)"
)
# What is longer is pasted matter or an essay, full of dates that are nobody's.
_READ_CHARS = 1500
# Nearly every time expression holds one of these; most messages hold none.
_MAYBE = re.compile(
    r"day|week|month|year|night|\d|last|next|ago|in (?:early|mid|late|the|[A-Z])|tomorrow|[a-z]er\b"
)
# "In October", "on Friday" and "in two weeks" may lie on either side of the message; they stay as
# they are written. So does "today", where it only means these days, and what is about no one day.
_CERTAIN = re.compile(
    r"(?i)(?:19|20)\d\d|\bago$|^(?:the )?day (?:before|after)|^(?:yesterday|tomorrow|tonight"
    r"|today)\b|^(?:last|next) (?!year|spring|summer|autumn|winter|fall)|^(?:last|next|this) year$"
    r"|^this (?:morning|afternoon|evening|week|month)"
)
_A_DAY = timedelta(days=1)

_LETTERS = {
    "person": "p",
    "pet": "p",
    "place": "l",
    "organisation": "o",
    "event": "e",
    "item": "i",
    "project": "i",
}
_LISTED = {"p": "relatives", "l": "venues", "o": "groups", "e": "happenings", "i": "things"}
_WORDS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_DETERMINERS = frozenset(
    "a an the my our your his her their its this that these those some new another any no".split()
)
# "A teacher" is nobody in particular.
_POSSESSIVE = frozenset("my our your his her their".split())
# "My brother Tobias" is tagged by his name.
_NAME_FOLLOWS = re.compile(r",? [A-ZÀ-Þ][^\W\d_]")
# Words before a thing that are no part of its name.
_NO_PART = ("function", "bland", "empty", "hollow", "adverbs", "verbs", "greetings")
# A message is about a few things; what lists more is a list.
_MOST = 6


def tags_of_turns(
    turns: Sequence[Turn],
    proses: Sequence[str],
    entities: Sequence[EntityFound],
    *,
    asks: Sequence[bool],
) -> tuple[Tags, ...]:
    """The tags of each turn.

    Args:
        proses: The turns' texts, or texts of the same length.
        asks: Whether each is a person's. Things are looked for in people's words; an answer is
            tagged with those that people have named in the window.
    """
    tags: list[dict[str, tuple[str, ...]]] = [{} for _ in turns]
    for entity in entities:
        letter = _LETTERS[entity.kind]
        for at in sorted({span.turn for span in entity.spans}):
            tags[at][letter] = (*tags[at].get(letter, ()), entity.name)
    found = [list(things(text)) for text in proses]
    named = {name for at, of_turn in enumerate(found) if asks[at] for _, name in of_turn}
    for at, turn in enumerate(turns):
        for letter, name in found[at]:
            if asks[at] or name in named:
                _add(tags[at], letter, name)
        if spoken := times(proses[at], turn.said_at):
            tags[at]["t"] = spoken
    return tuple(tags)


def _add(tags: dict[str, tuple[str, ...]], letter: str, name: str) -> None:
    present = tags.get(letter, ())
    is_named = any(name.casefold() in known.casefold() for of in tags.values() for known in of)
    if not is_named and len(present) < _MOST:
        tags[letter] = (*present, name)


def times(prose: str, said_at: datetime | None = None) -> tuple[str, ...]:
    """Each expression of time once, in the order of the text.

    Args:
        said_at: When the text was written. What then means one day, week, month or year is given
            as ISO 8601 writes it, `2024-05-03`, `2024-05`, `2024`, `2024-05-06/2024-05-12`; the
            rest as written.
    """
    read = prose[:_READ_CHARS]
    if not _MAYBE.search(read):
        return ()
    found = (" ".join(match.group().split()).rstrip(".") for match in _TIME.finditer(read))
    if said_at is not None:
        found = (_resolved(phrase, said_at) or phrase for phrase in found)
    return tuple(dict.fromkeys(found))


def _resolved(phrase: str, said_at: datetime) -> str:
    """Empty if it may mean several times."""
    if not _CERTAIN.search(phrase):
        return ""
    periods = read_time(phrase, said_at).periods
    return _iso(periods[0]) if len(periods) == 1 else ""


def _iso(period: Period) -> str:
    first, last = period.start.date(), (period.end - timedelta(microseconds=1)).date()
    if first == last:
        return first.isoformat()
    after = last + _A_DAY
    if first.day == after.day == 1:
        if (first.year + first.month // 12, first.month % 12 + 1) == (after.year, after.month):
            return f"{first:%Y-%m}"
        if first.month == after.month == 1 and after.year == first.year + 1:
            return f"{first.year:04}"
    # "About three weeks ago": the middle would be false precision.
    return f"{first.isoformat()}/{last.isoformat()}"


def things(prose: str) -> Iterator[tuple[str, str]]:
    """Everyday things, happenings, places and people in English prose, each with its letter.

    One word, or two where a determiner says that the first belongs to it: "a pottery class".
    """
    read = prose[:_READ_CHARS]
    found = list(_WORDS.finditer(read)) if is_english(read) else []
    for at, match in enumerate(found):
        letter = _letter_of(match.group().lower())
        if letter is None or _is_followed_by_listed(found, at):
            continue
        before = _word_before(found, at, read)
        has_part = _is_part(before) and _word_before(found, at - 1, read) in _DETERMINERS
        if letter == "p" and _NAME_FOLLOWS.match(read, match.end()):
            continue
        if _is_noun(match.group().lower(), letter, before, has_part=has_part):
            start = found[at - 1].start() if has_part else match.start()
            yield letter, read[start : match.end()]


def _is_noun(word: str, letter: str, before: str, *, has_part: bool) -> bool:
    """Whether the words before allow it to name a thing, or somebody of the speaker's own."""
    if letter == "p":
        return before in _POSSESSIVE
    can_be_verb = stem(word) in stems("verbs_or_nouns") or stem(word) in stems("verbs")
    return not can_be_verb or has_part or before in _DETERMINERS


def _letter_of(word: str) -> str | None:
    return next((letter for letter, name in _LISTED.items() if word in words(name)), None)


def _is_followed_by_listed(found: Sequence[re.Match[str]], at: int) -> bool:
    """Whether it only says what kind of thing the next word is: "coffee table"."""
    if at + 1 == len(found):
        return False
    following = found[at + 1]
    between = following.start() - found[at].end()
    return between == 1 and _letter_of(following.group().lower()) is not None


def _word_before(found: Sequence[re.Match[str]], at: int, prose: str) -> str:
    """The word just before, only a space away; empty if there is none."""
    if at < 1 or prose[found[at - 1].end() : found[at].start()] != " ":
        return ""
    return found[at - 1].group().lower()


def _is_part(word: str) -> bool:
    if not word or word in _DETERMINERS:
        return False
    return not any(word in words(name) for name in _NO_PART)

"""What the reader of facts learns from: tokens with their labels, from statements and the corpus.

Statements are messages written to learn from, with what each states marked in its words. A line is
a message, of one to three sentences; a third and more state nothing. `[words|predicate+]` marks a
value: `+` it begins or holds, `-` it ends, `!` it is denied, `=` it corrects what was said before.
`{Nina:1}` marks whom or what a value is said of, and the value's mark has the number:
`[plumber|works_as+ 1]`; without one it is the writer. With ` *` at the end the words say what
happens and are no value. Two facts of the same words are parted by a comma.

From the corpus come the English messages. Their annotators keep facts of other predicates too:
words of those count neither way, and the rest weighs less.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bench.corpus import OWNER, Person, Stated
from bench.datasets import BadData
from bench.reader import (
    EVENTS,
    PREDICATES,
    TASKS,
    Event,
    Mention,
    Reading,
    Span,
    subject_label,
    windows,
)
from language.analyzer import ENGLISH, language_of

STATEMENTS = Path(__file__).parent.parent / "statements"

_VALUE = re.compile(r"(?P<predicate>[a-z_]+)(?P<event>[+\-!=])(?: (?P<number>\d))?(?P<void> \*)?")
_EVENT_OF_MARK: Mapping[str, Event] = {event: event for event in EVENTS}
_NUMBER = re.compile(r":(?P<number>\d)\}")


class BadStatement(BadData):
    """A line is not in its form; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A message without its marks, and what they say of it."""

    text: str
    reading: Reading


def read_statements(folder: Path = STATEMENTS) -> Iterator[Statement]:
    """The statements of all files, by file and line.

    Raises:
        BadStatement: a line is not in the form that this module describes.
    """
    for path in sorted(folder.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            if line and not line.startswith("#"):
                try:
                    yield parse_statement(line)
                except BadStatement as error:
                    raise BadStatement(f"{path.name}, line {number}: {error}") from None


def parse_statement(line: str) -> Statement:
    """
    Raises:
        BadStatement: a mark is not closed, or not in its form, or names an unmarked subject.
    """
    marks = _Marks(line)
    marks.take_all()
    order = sorted(marks.values, key=lambda value: (value[0], value[1]))
    values = tuple(_span(value[:2], value[2], marks.mentions) for value in order)
    mentions = tuple(sorted(marks.mentions.values(), key=_place))
    return Statement("".join(marks.text), Reading(values, mentions))


def _place(mention: Mention) -> tuple[int, int]:
    return mention.start, mention.end


def _span(place: Sequence[int], tag: str, mentions: Mapping[int, Mention]) -> Span:
    found = _VALUE.fullmatch(tag)
    if not found or found["predicate"] not in PREDICATES:
        raise BadStatement(f"{tag!r} is no predicate with its event.")
    number = int(found["number"] or 0)
    if number and number not in mentions:
        raise BadStatement(f"subject {number} is not marked.")
    start, end = place
    return Span(
        start,
        end,
        found["predicate"],
        _EVENT_OF_MARK[found["event"]],
        mentions.get(number),
        void=bool(found["void"]),
    )


class _Marks:
    """Takes a line apart, character by character: marks may stand within mentions."""

    def __init__(self, line: str) -> None:
        self._line, self._at = line, 0
        self._open: list[tuple[str, int]] = []
        self.text: list[str] = []
        self.values: list[tuple[int, int, str]] = []
        self.mentions: dict[int, Mention] = {}

    def take_all(self) -> None:
        while self._at < len(self._line):
            if self._line[self._at] in "[{":
                self._open.append((self._line[self._at], len(self.text)))
                self._at += 1
            elif not self._close():
                self.text.append(self._line[self._at])
                self._at += 1
        if self._open:
            raise BadStatement("a mark is not closed.")

    def _close(self) -> bool:
        """Whether a mark ends here; then it is taken."""
        bracket, start = self._open[-1] if self._open else ("", 0)
        number = _NUMBER.match(self._line, self._at) if bracket == "{" else None
        if number:
            self.mentions[int(number["number"])] = Mention(start, len(self.text))
            self._at = number.end()
        elif bracket == "[" and self._line[self._at] == "|":
            end = self._line.find("]", self._at)
            tags = self._line[self._at + 1 : end] if end > 0 else ""
            self.values += [(start, len(self.text), tag) for tag in tags.split(", ")]
            self._at = end + 1 if end > 0 else len(self._line)
        else:
            return False
        if start == len(self.text):
            raise BadStatement("a mark has no words.")
        self._open.pop()
        return True


# One statement in so many is left out of learning, to measure with.
HELD_OUT = 10
CORPUS_WEIGHT = 0.3
_EVENTS: Mapping[str, Event] = {
    "begins": "+",
    "changes": "+",
    "ends": "-",
    "denies": "!",
    "corrects": "=",
}

# How a token is written.
CASES = ("small", "title", "capitals", "digits", "other")

Ints = NDArray[np.int32]
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Marked:
    """A text, what it states, and the places of which it is not known what they state."""

    text: str
    reading: Reading
    unknown: tuple[Place, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Example:
    """
    Attributes:
        cases: How each token is written, by its number in `CASES`.
        places: Where each token's characters begin and end.
        labels: By task, one a token; -1: no label is right or wrong.
        weights: Of each token; 0: it does not count.
    """

    marked: Marked
    ids: Ints
    cases: Ints
    places: tuple[Place, ...]
    labels: Mapping[str, Ints]
    weights: NDArray[np.float32]


def is_held_out(text: str) -> bool:
    """By the text alone, so that more statements leave it as it is."""
    return zlib.crc32(text.encode()) % HELD_OUT == 0


def some(marked: Sequence[Marked], share: float) -> list[Marked]:
    """A share of them, by their texts alone: the smaller is part of the larger."""
    return [each for each in marked if zlib.crc32(f"share {each.text}".encode()) < share * 2**32]


def of_statements(statements: Iterable[Statement]) -> Iterator[Marked]:
    return (Marked(each.text, each.reading) for each in statements)


def of_people(people: Iterable[Person]) -> Iterator[Marked]:
    """What the owners of palaces say in English, a few sentences at a time."""
    for person in people:
        stated = defaultdict[str, list[Stated]](list)
        for fact in person.facts:
            stated[fact.at].append(fact)
        for name, turn in person.talk.turns().items():
            is_owner = turn.role == "user" and not turn.speaker
            if is_owner and language_of(turn.text) == ENGLISH:
                yield from _cut(_marked(turn.text, stated[name]))


def _marked(text: str, stated: Sequence[Stated]) -> Marked:
    values: list[Span] = []
    unknown: list[Place] = []
    for fact in stated:
        if fact.event in _EVENTS:
            found = _value(text, fact)
            if found:
                values.append(found)
            else:
                start = text.find(fact.words)
                unknown.append((start, start + len(fact.words)))
    mentions = {each.subject for each in values if each.subject}
    ordered = tuple(sorted(mentions, key=lambda each: (each.start, each.end)))
    return Marked(text, Reading(tuple(values), ordered), tuple(unknown), CORPUS_WEIGHT)


def _value(text: str, fact: Stated) -> Span | None:
    """None if the value is not in the words, or its subject or predicate is one we do not read."""
    begin = text.find(fact.words)
    at = text.lower().find(fact.value.lower(), begin, begin + len(fact.words))
    subject = None
    if fact.subject != OWNER:
        place = text.lower().find(fact.subject.lower())
        subject = Mention(place, place + len(fact.subject))
    known = fact.predicate in PREDICATES and fact.value and at >= 0
    if not known or (subject and subject.start < 0):
        return None
    return Span(at, at + len(fact.value), fact.predicate, _EVENTS[fact.event], subject)


def _cut(marked: Marked) -> Iterator[Marked]:
    for start, end in windows(marked.text):
        inside = [
            each for each in marked.reading.mentions if start <= each.start and each.end <= end
        ]
        values = [each for each in marked.reading.values if start <= each.start and each.end <= end]
        yield replace(
            marked,
            text=marked.text[start:end],
            reading=Reading(
                tuple(_moved(each, start) for each in values if each.subject in (None, *inside)),
                tuple(
                    replace(each, start=each.start - start, end=each.end - start) for each in inside
                ),
            ),
            unknown=tuple((first - start, last - start) for first, last in marked.unknown),
        )


def _moved(value: Span, by: int) -> Span:
    subject = value.subject
    if subject:
        subject = replace(subject, start=subject.start - by, end=subject.end - by)
    return replace(value, start=value.start - by, end=value.end - by, subject=subject)


def example(marked: Marked, tokenizer: Tokenizer) -> Example:
    encoded = tokenizer.encode(marked.text)
    places = tuple(encoded.offsets)
    count = len(places)
    labels = {task: np.full(count, -1, np.int32) for task in TASKS}
    for task in ("value", "mention"):
        labels[task][:] = 0
    weights = np.array([marked.weight * (end > start) for start, end in places], np.float32)
    for place in marked.unknown:
        weights[_tokens(places, place)] = 0
    for mention in marked.reading.mentions:
        _mark(labels["mention"], _tokens(places, (mention.start, mention.end)))
    for value in reversed(marked.reading.values):
        _label(labels, weights, _tokens(places, (value.start, value.end)), value, marked)
    ids = np.array(encoded.ids, np.int32)
    return Example(marked, ids, cases(marked.text, places), places, labels, weights)


def _label(
    labels: Mapping[str, Ints],
    weights: NDArray[Any],
    tokens: list[int],
    value: Span,
    marked: Marked,
) -> None:
    _mark(labels["value"], tokens)
    weights[tokens] = marked.weight
    labels["predicate"][tokens] = PREDICATES.index(value.predicate)
    labels["event"][tokens] = EVENTS.index(value.event)
    labels["void"][tokens] = value.void
    place = value.start, value.end
    labels["subject"][tokens] = subject_label(place, value.subject, marked.reading.mentions)


def _mark(labels: Ints, tokens: list[int]) -> None:
    labels[tokens] = 2
    labels[tokens[:1]] = 1


def _tokens(places: Sequence[Place], place: Place) -> list[int]:
    first, last = place
    return [
        number
        for number, (start, end) in enumerate(places)
        if start < last and end > first and end > start
    ]


def cases(text: str, places: Sequence[Place]) -> Ints:
    """The number in `CASES` of each token, by where it begins and ends in the text."""
    return np.array([_case(text[start:end]) for start, end in places], np.int32)


def _case(word: str) -> int:
    if not word or word.islower():
        return 0
    if word.istitle() and word.isalpha():
        return 1
    if word.isupper():
        return 2
    if any(character.isdigit() for character in word):
        return 3
    return 0 if word.isalnum() else 4

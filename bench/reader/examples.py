"""What the reader of facts learns from: tokens with their labels.

From statements (`bench.statements`), and from the English messages of the corpus, whose annotators
keep facts of other predicates too: words of those count neither way, and the rest weighs less.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bench.corpus import OWNER, Person, Stated
from bench.reader.decoding import (
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
from bench.statements import Statement
from language.detection import ENGLISH, language_of

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

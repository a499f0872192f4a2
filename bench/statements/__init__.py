"""Messages written to learn from, with what each states marked in its words.

A line is a message, of one to three sentences; a third and more state nothing.
`[words|predicate+]` marks a value: `+` it begins or holds, `-` it ends, `!` it is denied, `=` it
corrects what was said before. `{Nina:1}` marks whom or what a value is said of, and the value's
mark has the number: `[plumber|works_as+ 1]`; without one it is the writer. With ` *` at the end the
words say what happens and are no value. Two facts of the same words are parted by a comma.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.datasets.base import BadData
from bench.reader.decoding import EVENTS, PREDICATES, Event, Mention, Reading, Span

STATEMENTS = Path(__file__).parent

_VALUE = re.compile(r"(?P<predicate>[a-z_]+)(?P<event>[+\-!=])(?: (?P<number>\d))?(?P<void> \*)?")
_EVENTS: Mapping[str, Event] = {event: event for event in EVENTS}
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
        _EVENTS[found["event"]],
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

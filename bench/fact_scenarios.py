"""Scenarios: messages, the facts that must be active afterwards, and whether a found one matches.

A part is a file of JSON lines, one scenario each, in the form of the classes below. Most are for
development; the others are a test set: their misses are never inspected or tuned on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from language.transcripts import ROLES, Role

DEV: Final = "dev"
SET_ASIDE: Final = "set-aside"
PARTS = {
    DEV: Path(__file__).parent / "facts" / "dev.jsonl",
    SET_ASIDE: Path(__file__).parent / "facts" / "set_aside.jsonl",
}
_Made = TypeVar("_Made")

# The ways a fact may be retired (`Fact.Fate`).
FATES = ("superseded", "ended", "refined", "corrected")
MOST_MESSAGES = 5


class BadScenario(Exception):
    """A line is invalid; the message says which, and why."""


@dataclass(frozen=True, slots=True)
class Message:
    """
    Attributes:
        joined: Sent in one call with the previous message.
    """

    role: Role
    text: str
    said_at: datetime
    speaker: str = ""
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """A pattern of a fact that accepts equivalent wordings.

    Attributes:
        subject: Names, one of which must match; `*` matches any characters.
        predicate: Predicates, likewise.
        words: All must occur in the object or the text, as whole words, ignoring case; `cat|kitten`
            are alternatives, and `vegan*` is the beginning of a word.
        without: None of these may occur.
        stance: The allowed stances, if the fact has one.
        aspect: The expected aspects, with `*`; empty: any.
        valid_from: The beginning of an ISO date: `2024-05` is any day of that May; empty: any.
            Likewise `valid_to`.
        how: The right fates of a fact that should be retired.
    """

    subject: tuple[str, ...]
    predicate: tuple[str, ...]
    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    stance: tuple[str, ...] = ()
    aspect: tuple[str, ...] = ()
    valid_from: str = ""
    valid_to: str = ""
    how: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(["|".join(self.subject), "|".join(self.predicate), *self.words])


@dataclass(frozen=True, slots=True)
class Found:
    """A fact at the end of a scenario, active or retired.

    Attributes:
        fate: Why it was retired; empty if it is active.
    """

    subject: str
    predicate: str
    object: str
    text: str
    aspect: str = ""
    stance: str = ""
    valid_from: date | None = None
    valid_to: date | None = None
    fate: str = ""
    confidence: float = 1.0

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object!r} ({self.text})"


@dataclass(frozen=True, slots=True)
class Scenario:
    """
    Attributes:
        tags: What it tests.
        active: Facts that must be active at the end.
        retired: Facts that must have been active and are retired.
        may: Facts that are ignored.
    """

    id: str
    tags: tuple[str, ...]
    messages: tuple[Message, ...]
    active: tuple[Expected, ...] = ()
    retired: tuple[Expected, ...] = ()
    may: tuple[Expected, ...] = ()

    def calls(self) -> list[list[Message]]:
        """The messages of each call."""
        calls: list[list[Message]] = []
        for message in self.messages:
            if message.joined and calls:
                calls[-1].append(message)
            else:
                calls.append([message])
        return calls


def matches(expected: Expected, fact: Found) -> bool:
    """Whether a fact matches, apart from its dates and aspect."""
    said = f"{fact.object}\n{fact.text}"
    return (
        _is_one_of(expected.subject, fact.subject)
        and _is_one_of(expected.predicate, fact.predicate)
        and all(_holds(said, word) for word in expected.words)
        and not any(_holds(said, word) for word in expected.without)
        and not (expected.stance and fact.stance and fact.stance not in expected.stance)
    )


def details(expected: Expected, fact: Found) -> Iterator[tuple[str, bool]]:
    """The expected details by name, each with whether it is right."""
    if expected.aspect:
        yield "aspect", _is_one_of(expected.aspect, fact.aspect)
    if expected.valid_from:
        yield "valid_from", str(fact.valid_from).startswith(expected.valid_from)
    if expected.valid_to:
        yield "valid_to", str(fact.valid_to).startswith(expected.valid_to)


def _is_one_of(patterns: Iterable[str], value: str) -> bool:
    return any(fnmatchcase(value.lower(), pattern.lower()) for pattern in patterns)


def _holds(said: str, word: str) -> bool:
    return _pattern(word).search(said) is not None


@cache
def _pattern(word: str) -> re.Pattern[str]:
    """The pattern of `cat|vegan*`: an alternative as a whole word, or as the start of one."""
    alternatives = [
        re.escape(each.rstrip("*")) + ("" if each.endswith("*") else r"(?!\w)")
        for each in word.split("|")
    ]
    return re.compile(rf"(?<!\w)(?:{'|'.join(alternatives)})", re.IGNORECASE)


def read(path: Path) -> list[Scenario]:
    """The scenarios of a file, in its order.

    Raises:
        BadScenario: a line is invalid; says which and why.
    """
    scenarios: dict[str, Scenario] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            scenario = _scenario(json.loads(line))
        except (ValueError, BadScenario) as error:
            raise BadScenario(f"{path.name}, line {number}: {error}.") from error
        if scenario.id in scenarios:
            raise BadScenario(f"{path.name}, line {number}: {scenario.id} was there before.")
        scenarios[scenario.id] = scenario
    return list(scenarios.values())


def _scenario(line: Any) -> Scenario:
    of = _Fields(line, "the scenario")
    scenario = Scenario(
        id=of.text("id"),
        tags=of.texts("tags"),
        messages=tuple(of.each("messages", _message)),
        active=tuple(of.each("active", _expected)),
        retired=tuple(of.each("retired", _retired)),
        may=tuple(of.each("may", _expected)),
    )
    of.done()
    if not scenario.tags:
        raise BadScenario("it has no tags")
    if not 1 <= len(scenario.messages) <= MOST_MESSAGES:
        raise BadScenario(f"it needs one to {MOST_MESSAGES} messages")
    return scenario


def _message(line: Any) -> Message:
    of = _Fields(line, "a message")
    role = of.text("role")
    if role not in ROLES:
        raise BadScenario(f"the role {role!r} is none of {', '.join(ROLES)}")
    said_at = datetime.fromisoformat(of.text("at"))
    if said_at.tzinfo is None:
        raise BadScenario(f"the time {said_at} has no offset from UTC")
    message = Message(
        role,
        of.text("text"),
        said_at,
        speaker=of.text("speaker", default=""),
        joined=of.flag("joined"),
    )
    of.done()
    return message


def _expected(line: Any) -> Expected:
    return _fact(_Fields(line, "a fact"))


def _retired(line: Any) -> Expected:
    of = _Fields(line, "a fact")
    how = of.texts("how")
    if not how or set(how) - set(FATES):
        raise BadScenario(f"what is retired needs `how`, of {', '.join(FATES)}")
    return _fact(of, how)


def _fact(of: _Fields, how: tuple[str, ...] = ()) -> Expected:
    fact = Expected(
        subject=of.texts("subject"),
        predicate=of.texts("predicate"),
        words=of.texts("words"),
        without=of.texts("without"),
        stance=of.texts("stance"),
        aspect=of.texts("aspect"),
        valid_from=of.day("valid_from"),
        valid_to=of.day("valid_to"),
        how=how,
    )
    of.done()
    if not fact.subject or not fact.predicate:
        raise BadScenario("a fact needs a subject and a predicate")
    return fact


class _Fields:
    """The fields of a JSON object, each taken once; what is left over is a slip of the pen."""

    def __init__(self, line: Any, what: str) -> None:
        if not isinstance(line, Mapping):
            raise BadScenario(f"{what} is not an object")
        self._left, self._what = dict(line), what

    def text(self, name: str, *, default: str | None = None) -> str:
        value = self._left.pop(name, default)
        if not isinstance(value, str) or (not value.strip() and default is None):
            raise BadScenario(f"{self._what} needs a text as `{name}`")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._left.pop(name, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise BadScenario(f"`{name}` of {self._what} is not a list of texts")
        return tuple(values)

    def flag(self, name: str) -> bool:
        value = self._left.pop(name, False)
        if not isinstance(value, bool):
            raise BadScenario(f"`{name}` of {self._what} is neither true nor false")
        return value

    def day(self, name: str) -> str:
        """The beginning of an ISO date: a year, a month or a day."""
        value = self.text(name, default="")
        if value and not re.fullmatch(r"\d{4}(-\d{2}(-\d{2})?)?", value):
            raise BadScenario(f"`{name}` of {self._what} is no year, month or day: {value!r}")
        return value

    def each(self, name: str, make: Callable[[Any], _Made]) -> Iterator[_Made]:
        values = self._left.pop(name, [])
        if not isinstance(values, list):
            raise BadScenario(f"`{name}` of {self._what} is not a list")
        return (make(value) for value in values)

    def done(self) -> None:
        if self._left:
            raise BadScenario(f"{self._what} has no field {', '.join(map(repr, self._left))}")

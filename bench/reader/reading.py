"""What a reader sees in a message: the values stated, their subjects and their events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# It is so, or becomes so; it is so no longer; it is not so, and may never have been; it takes the
# place of what was said wrongly before.
Event = Literal["+", "-", "!", "="]


@dataclass(frozen=True, slots=True)
class Mention:
    """The person or thing that a value is about: characters `start` to `end` (exclusive).

    It may hold the value itself: "my sister Ana", a sibling named Ana.
    """

    start: int
    end: int
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Span:
    """A value: characters `start` to `end` (exclusive) of the message.

    Attributes:
        predicate: As `language.facts.PREDICATES` lists them, and a few more.
        subject: None: it is said of the author.
        void: The words say what happens and are no value: "we broke up".
        score: How sure the reader is of all of it, 0 to 1.
    """

    start: int
    end: int
    predicate: str
    event: Event = "+"
    subject: Mention | None = None
    void: bool = False
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The values in the order of the message, and all mentions, those without a value too."""

    values: tuple[Span, ...] = ()
    mentions: tuple[Mention, ...] = ()

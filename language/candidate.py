"""What an extractor finds in messages: statements that may become facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

FactType = Literal["fact", "preference", "opinion", "event"]
TYPES: tuple[FactType, ...] = ("fact", "preference", "opinion", "event")

# What somebody who speaks of themselves is called where no name is known.
USER = "User"


@dataclass(frozen=True, slots=True)
class Words:
    """Characters `start` to `end` (exclusive) of message `turn`, counted from 0."""

    turn: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Thing:
    """Someone or something a statement is about; `kind` is one of `Entity.Kind`."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One statement, by itself: whoever reads it needs none of the messages around it.

    Attributes:
        text: A sentence in the third person: "User lives in Lisbon".
        predicate: What is said of the subject, in snake_case, as `language.predicates` lists
            them; others are allowed.
        object: What completes it: "Lisbon".
        thing: What the object is, where it is somebody or something with a name: the statement is
            then also an edge of the graph.
        aspect: The facet it holds for, where the same may be said differently of others:
            "generics" of opinions on TypeScript. Empty: of the whole.
        stance: positive, negative, neutral or mixed, where it is an opinion or a preference.
        negated: It says that this is not, or no longer, so.
        corrects: It says that what was said before was wrong all along.
        valid_from: Since when it is true; of an event, when it happens. None: when it was said.
        valid_to: Until when; None while there is no end.
        confidence: 0 to 1.
        category: A path such as "home/pets".
        words: The exact words it rests on, at least one stretch.
    """

    type: FactType
    subject: Thing
    predicate: str
    object: str
    text: str
    words: tuple[Words, ...]
    thing: Thing | None = None
    aspect: str = ""
    stance: str = ""
    negated: bool = False
    corrects: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    confidence: float = 0.8
    category: str = ""
    tags: tuple[str, ...] = field(default_factory=tuple)

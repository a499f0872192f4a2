"""What an extractor is given and what it answers, with or without a language model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from language.facts import Candidate
from language.transcripts import Turn

Vectors = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]


def normalised(rows: Vectors) -> Vectors:
    """The rows at unit length."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-9), np.float32)


@dataclass(frozen=True, slots=True)
class WingFound:
    """A subject the conversation belongs to; `kind` is one of `Wing.Kind`.

    Attributes:
        is_area: It is an area of life that the rules found, and that nobody named.
    """

    kind: str
    name: str
    aliases: tuple[str, ...] = ()
    is_area: bool = False


@dataclass(frozen=True, slots=True)
class TopicFound:
    """Turns `first` to `last` (indices into the window, both included) are about `title`."""

    title: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of turn `turn` of the window."""

    turn: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class EntityFound:
    """Someone or something named; `kind` is one of `Entity.Kind`."""

    kind: str
    name: str
    spans: tuple[Span, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownEntity:
    kind: str
    name: str
    aliases: tuple[str, ...] = ()


class KnownEntities(Protocol):
    def named(self, names: Collection[str]) -> Mapping[str, KnownEntity]:
        """Those that go by one of these names or aliases, by it and by their own, case folded."""
        ...


def named_among(
    known: Mapping[str, KnownEntity], names: Collection[str]
) -> Mapping[str, KnownEntity]:
    """`KnownEntities.named`, of entities by whatever they go by."""
    found = {name: known[name] for name in map(str.casefold, names) if name in known}
    return {entity.name.casefold(): entity for entity in found.values()} | found


@dataclass(frozen=True, slots=True)
class Listed:
    """Entities that are all at hand."""

    entities: Sequence[KnownEntity] = ()

    def named(self, names: Collection[str]) -> Mapping[str, KnownEntity]:
        known = {
            name.casefold(): entity
            for entity in self.entities
            for name in (*entity.aliases, entity.name)
        }
        return named_among(known, names)


@dataclass(frozen=True, slots=True)
class Context:
    """What is already known when a window is read.

    Attributes:
        title: What the source calls the conversation; may be empty or useless ("New chat").
        agent: The named agent that took part, where there was one.
        speakers: Names of all who speak in the conversation.
        before: The turns just before the window, oldest first; for understanding only.
        topic: The topic the turns before were about; empty at the start.
        wings: The palace's wings, to be reused where one fits.
        entities: The palace's, to be asked for by name.
        returning: Entities that at least two other conversations name again and again.
        memories: What is known about whom the window names, latest first; for a model that
            also reads facts.
    """

    title: str = ""
    agent: str = ""
    speakers: tuple[str, ...] = ()
    before: tuple[Turn, ...] = ()
    topic: str = ""
    wings: tuple[WingFound, ...] = ()
    entities: KnownEntities = field(default_factory=Listed)
    returning: tuple[KnownEntity, ...] = ()
    memories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one window holds.

    Attributes:
        wing: The subject of the conversation as far as this window shows.
        title: What a person would call the conversation.
        topics: Cover every turn of the window once, in order.
        tags: One mapping a turn: AAAK letter to the names tagged, `{"p": ("Derek",)}`.
        preferences: One number a turn, 0 to 1: how much it states a lasting wish or taste of
            its speaker, or a standing instruction.
        facts: What the turns say that is worth remembering; None where only a model was to tell
            and none was asked, so that somebody else reads them.
        notes: What was degraded, in sentences for a person.
    """

    wing: WingFound
    title: str
    topics: tuple[TopicFound, ...]
    entities: tuple[EntityFound, ...]
    tags: tuple[Mapping[str, tuple[str, ...]], ...]
    preferences: tuple[float, ...]
    facts: tuple[Candidate, ...] | None = None
    notes: tuple[str, ...] = ()

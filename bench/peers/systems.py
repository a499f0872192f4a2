"""A memory system as the comparison sees it, whether it runs here or in another process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from bench.datasets.base import Case, Question
from language.transcripts import Transcript, Turn

_SAID = Turn("1", "user", "Nothing of note was said.", datetime(2024, 1, 1, tzinfo=UTC))
# Taken in and asked first of all: what a process does once, such as reading the model, is not
# the question.
WARM_UP = Case(
    "warm-up",
    (Transcript("bench", "1", "", (_SAID,)),),
    (Question("1", "", "What was said?", None, frozenset(), frozenset()),),
)


@dataclass(frozen=True, slots=True)
class Found:
    """
    Attributes:
        turns: Messages as `conversation/message`, best first, none twice.
    """

    turns: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Weight:
    """
    Attributes:
        disk: Bytes of what is kept of the person taken in last, texts and indexes.
        memory: The greatest number of bytes the process held so far.
        database: Bytes a server beside it holds now; 0 where there is none.
    """

    disk: int
    memory: int
    database: int = 0


class System(Protocol):
    def take_in(self, case: Case) -> float:
        """Take in a person's conversations; how many seconds it took."""
        ...

    def ask(self, question: Question, top_k: int) -> Found:
        """Ask of the person taken in last."""
        ...

    def weigh(self) -> Weight: ...


class PeerFailed(Exception):
    """A system cannot be measured; the message says why. The others can."""

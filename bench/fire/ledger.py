"""What Loci was given and what it acknowledged, held against what it has in the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

# The owner's own palace has no subject.
OWN = ""


class State(Enum):
    """What is known of a message."""

    OFFERED = "sent, and the answer was lost or an error"
    ACCEPTED = "acknowledged"
    BEING_DELETED = "its deletion was asked for, and the answer was lost or an error"
    DELETED = "its deletion was acknowledged"


@dataclass(frozen=True, slots=True, order=True)
class Words:
    """A message: no two of a run have the same text in one palace."""

    subject: str
    text: str


@dataclass(slots=True)
class Comparison:
    """
    Attributes:
        lost: Acknowledged, and not there.
        doubled: There more than once.
        returned: Deleted for good, and there again.
    """

    lost: list[Words] = field(default_factory=list)
    doubled: list[Words] = field(default_factory=list)
    returned: list[Words] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        return {
            "lost": len(self.lost),
            "doubled": len(self.doubled),
            "returned": len(self.returned),
        }

    def examples(self) -> Iterable[str]:
        for name in ("lost", "doubled", "returned"):
            for words in sorted(getattr(self, name))[:5]:
                yield f"{name}: {words.subject or 'the owner'}: {words.text[:120]}"


class Ledger:
    """Safe to use from many threads."""

    def __init__(self) -> None:
        self._states: dict[Words, State] = {}
        # When a message that is sent until it is acknowledged was sent first.
        self._waiting: dict[Words, float] = {}
        self._lock = threading.Lock()

    def offer(self, words: Words, *, until_accepted: bool = False) -> None:
        with self._lock:
            self._states.setdefault(words, State.OFFERED)
            if until_accepted:
                self._waiting.setdefault(words, time.time())

    def accept(self, words: Words) -> None:
        self._set([words], State.ACCEPTED)

    def accept_all(self, messages: Iterable[Words]) -> None:
        self._set(messages, State.ACCEPTED)

    def deleting(self, messages: Iterable[Words]) -> None:
        self._set(messages, State.BEING_DELETED)

    def deleted(self, messages: Iterable[Words]) -> None:
        self._set(messages, State.DELETED)

    def give_up(self, words: Words) -> None:
        """It is not sent again; whether it is there nobody knows."""
        with self._lock:
            self._waiting.pop(words, None)

    def waiting_since(self, moment: float) -> set[str]:
        """What was sent before that moment and is still being sent, for want of an answer."""
        with self._lock:
            return {f"write {w.text}" for w, began in self._waiting.items() if began < moment}

    def accepted(self) -> int:
        with self._lock:
            return sum(state is not State.OFFERED for state in self._states.values())

    def compare(self, there: Mapping[Words, int]) -> Comparison:
        """
        Args:
            there: How often each message is there.
        """
        found = Comparison()
        with self._lock:
            states = dict(self._states)
        for words, state in states.items():
            count = there.get(words, 0)
            if state is State.ACCEPTED and not count:
                found.lost.append(words)
            if state is State.DELETED and count:
                found.returned.append(words)
            if count > 1:
                found.doubled.append(words)
        return found

    def states(self) -> dict[str, int]:
        with self._lock:
            return dict(Counter(state.name.lower() for state in self._states.values()))

    def _set(self, messages: Iterable[Words], state: State) -> None:
        with self._lock:
            for words in messages:
                self._states[words] = state
                self._waiting.pop(words, None)

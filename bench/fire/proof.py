"""What a run proves: nothing is lost or doubled, and how soon all goes on after a fault.

What Loci has in the end is held against the ledger of what it was given and what it acknowledged.

Readers ask a few times a second. A fault ends for them with the first good answer after the last
bad one. Unfinished work is what was not done when the fault ended; it recovers when the last of it
is done, however much has come since. Both are counted from the end of the fault: from a kill, or
from the moment at which what was stopped goes on.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import httpx
import psycopg

from bench.fire.installation import Installation

# The palaces of a run; the owner's own one has no subject.
OWN = ""
KEYED, PLAIN, FACTS, PROXY = "keyed", "plain", "facts", "proxy"


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

    def accepted(self) -> set[Words]:
        """What was acknowledged so far, and is to stay."""
        with self._lock:
            return {words for words, state in self._states.items() if state is State.ACCEPTED}

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


_DRAWERS = """
SELECT p.subject, d.text, count(*) FROM palace_drawer d JOIN palace_palace p ON p.id = d.palace_id
GROUP BY 1, 2
"""
_SAID = """
SELECT p.subject, m.text, count(*) FROM chat_message m JOIN palace_palace p ON p.id = m.palace_id
WHERE m.role = 'user' GROUP BY 1, 2
"""


def there_in(installation: Installation) -> Counter[Words]:
    """How often each message is there: in drawers or, before these are filed, in the chat."""
    found: Counter[Words] = Counter()
    for statement in (_DRAWERS, _SAID):
        for subject, text, count in installation.rows(statement):
            found[Words(subject, text)] = max(found[Words(subject, text)], count)
    return found


# `Client.ask` in `bench.fire.load`.
Ask = Callable[..., httpx.Response | None]
# An answer that takes longer counts as none.
READ_S = 5
READ_EVERY_S = 0.25
LOOK_EVERY_S = 0.5
# Good answers in a row by which readers have recovered.
STEADY = 4
_UNFINISHED = """
SELECT name FROM (
  SELECT 'message ' || id, filed_at FROM palace_drawer
  WHERE trashed_at IS NULL AND (mined_at IS NULL OR facts_read_at IS NULL)
  UNION ALL SELECT 'import ' || id, created_at FROM palace_importjob WHERE status = 'running'
  UNION ALL SELECT 'conversation ' || id, mine_due_at FROM chat_conversation
  UNION ALL SELECT 'reply ' || id, said_at FROM chat_message WHERE status = 'writing'
) unfinished (name, since)
WHERE since < to_timestamp(%(moment)s)
  -- What was said while the clock was ahead.
  OR since > to_timestamp(%(moment)s) + interval '1 hour'
"""


@dataclass(slots=True)
class Injected:
    """A fault and what became of it.

    Attributes:
        began, ended: In seconds since the epoch.
        under_way: Whether what was killed was doing its work at that moment; None where that is
            not looked at.
        unfinished: What was not done when it ended; None until that could be read.
        done_s: From its end until all of that was done.
        slowest: What of it was done last.
    """

    fault: str
    began: float
    ended: float = 0.0
    under_way: bool | None = None
    readers_s: float = 0.0
    unfinished: set[str] | None = None
    done_s: float | None = None
    slowest: str = ""

    def __str__(self) -> str:
        return f"readers back after {self.readers_s:.1f} s"

    def as_json(self, *, since: float) -> dict[str, Any]:
        """
        Args:
            since: The moment that its end is counted from.
        """
        done = None if self.done_s is None else round(self.done_s, 1)
        held = round(self.ended - self.began, 1)
        row: dict[str, Any] = {"fault": self.fault, "under_way": self.under_way, "held_s": held}
        row |= {"at_s": round(self.ended - since, 1), "readers_s": round(self.readers_s, 1)}
        return row | {"unfinished_s": done, "slowest": self.slowest.partition(" ")[0]}


@dataclass(frozen=True, slots=True)
class _Read:
    began: float
    ended: float
    good: bool


class Readers:
    """One who recalls and one who lists, each in a thread during the block `asking`."""

    def __init__(self, clients: tuple[Ask, Ask]) -> None:
        self._clients = clients
        self._reads: tuple[list[_Read], list[_Read]] = ([], [])
        self._over = threading.Event()

    @contextmanager
    def asking(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._ask, args=[who]) for who in (0, 1)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _ask(self, who: int) -> None:
        while not self._over.wait(READ_EVERY_S):
            began = time.time()
            answer = self._answer(who)
            good = answer is not None and answer.status_code == 200
            self._reads[who].append(_Read(began, time.time(), good))

    def _answer(self, who: int) -> httpx.Response | None:
        ask = self._clients[who]
        if who:
            return ask("GET", "/v1/drawers/", params={"user_id": KEYED}, timeout=READ_S)
        asked = {"query": "Where do I live?", "user_id": KEYED}
        return ask("POST", "/recall", json=asked, timeout=READ_S)

    def are_steady(self, since: float) -> bool:
        """Whether all have had good answers in a row, asked for since then."""
        return all(
            len(reads) >= STEADY and all(r.good and r.began >= since for r in reads[-STEADY:])
            for reads in self._reads
        )

    def recovered_in(self, fault: Injected, until: float) -> float:
        """Seconds from the fault's end to the first good answer after the last bad one.

        Args:
            until: When the next fault began.
        """
        return max(_recovered_in(reads, fault.ended, until) for reads in self._reads)

    def count(self) -> dict[str, int]:
        reads = [read for reads in self._reads for read in reads]
        return {"reads": len(reads), "bad": sum(not read.good for read in reads)}


def _recovered_in(reads: list[_Read], moment: float, until: float) -> float:
    # One that ends badly after the next fault has begun belongs to that.
    bad = [r.ended for r in reads if not r.good and moment <= r.ended < until]
    if not bad:
        return 0.0
    good = [r.ended for r in reads if r.good and r.ended > max(bad)]
    return (min(good) if good else until) - moment


@dataclass(slots=True)
class Watch:
    """Looks at what is unfinished, in a thread during the block `looking`."""

    installation: Installation
    ledger: Ledger
    faults: list[Injected] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def looking(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            for fault in [each for each in self.faults if each.done_s is None]:
                self._look_at(fault)

    def _look_at(self, fault: Injected) -> None:
        left = self.unfinished(fault.ended)
        if left is None:
            return
        if fault.unfinished is None:
            fault.unfinished = left
        still = fault.unfinished & left
        if still:
            fault.slowest = min(still)
        else:
            fault.done_s = time.time() - fault.ended if fault.slowest else 0.0

    def unfinished(self, moment: float) -> set[str] | None:
        """What began before that moment and is not done; None while the database is away."""
        try:
            rows = self.installation.rows(_UNFINISHED, {"moment": moment})
        except psycopg.Error:
            return None
        return {name for (name,) in rows} | self.ledger.waiting_since(moment)

    def all_done(self) -> bool:
        return all(each.done_s is not None for each in self.faults)

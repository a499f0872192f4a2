"""How long readers and unfinished work take to recover from a fault.

Readers ask a few times a second. A fault ends for them with the first good answer after the last
bad one. Unfinished work is what was not done when the fault ended; it recovers when the last of it
is done, however much has come since. Both are counted from the end of the fault: from a kill, or
from the moment at which what was stopped goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg

from bench.fire.installation import Installation
from bench.fire.ledger import Ledger
from bench.fire.load import KEYED, Client

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
        began, ended: In seconds since the epoch; of a kill they are one.
        unfinished: What was not done when it ended; None until that could be read.
        done_s: From its end until all of that was done.
        slowest: What of it was done last.
    """

    fault: str
    began: float
    ended: float
    readers_s: float = 0.0
    unfinished: set[str] | None = None
    done_s: float | None = None
    slowest: str = ""

    def as_json(self) -> dict[str, Any]:
        done = None if self.done_s is None else round(self.done_s, 1)
        held = round(self.ended - self.began, 1)
        row = {"fault": self.fault, "held_s": held, "readers_s": round(self.readers_s, 1)}
        return row | {"unfinished_s": done, "slowest": self.slowest.partition(" ")[0]}


@dataclass(frozen=True, slots=True)
class _Read:
    began: float
    ended: float
    good: bool


class Readers:
    """One who recalls and one who lists, each in a thread during the block `asking`."""

    def __init__(self, clients: tuple[Client, Client]) -> None:
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
        client = self._clients[who]
        if who:
            return client.ask("GET", "/v1/drawers/", params={"user_id": KEYED}, timeout=READ_S)
        asked = {"query": "Where do I live?", "user_id": KEYED}
        return client.ask("POST", "/recall", json=asked, timeout=READ_S)

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

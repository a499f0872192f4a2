"""Admission: a process works on two requests at a time that read for programs, and on one other.

Threads of a process share Python's lock, so that each of many that run side by side waits for all
others. One that waits, such as for a model, makes room meanwhile. Where too many wait, it is the
caller with most of them who is refused.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from django.conf import settings

# One computes while others wait for the database or the embedder. An agent's turn waits for what it
# reads, such as a recall; a page or a write beside it takes several times as long.
READS_AT_ONCE, OTHERS_AT_ONCE = 2, 1
# After that a request no longer counts: it may be long, or wait for a row that others have locked.
COUNTS_S = 1.0
# A write takes several times as long as a page.
READS_YIELD_S, PAGES_YIELD_S, WRITES_YIELD_S = 0.0, 0.5, 1.0
# Of each kind: about five seconds of work, where many come at once. Where all have waited for more
# than a moment, for so long, more come than are answered: a long queue answers no more of them,
# only each of them later.
MOST_WAITING, MOST_IN_LASTING_QUEUE = 50, 10
A_MOMENT_S, LASTING_S = 0.5, 5.0
_LOOK_AGAIN_S = 0.25


class TooBusy(Exception):
    """So many requests wait already, or have waited for so long, that this one is refused."""


@dataclass(eq=False, slots=True)
class _Request:
    """
    Attributes:
        due: Those with an earlier one are admitted first; of the monotonic clock, as all times.
        yields_s: Of its kind: programs' reads, pages or writes.
        caller: Who sent it; empty where nobody knows.
        counts_until: Set when it is admitted, and again when it goes on after a wait.
    """

    due: float
    yields_s: float
    caller: str
    counts_until: float = 0.0
    is_over: bool = False
    is_refused: bool = False
    # It is admitted or refused.
    decided: threading.Event = field(default_factory=threading.Event)

    @property
    def is_read(self) -> bool:
        return self.yields_s == READS_YIELD_S


class _Queue:
    """The requests of one kind that wait; refusals as in controlled delay (CoDel, RFC 8289)."""

    def __init__(self) -> None:
        self.requests: list[_Request] = []
        # When it was last empty, or one was admitted after no more than a moment.
        self._short_at = 0.0

    def add(self, request: _Request) -> None:
        """
        Raises:
            TooBusy: Too many wait already, and no caller has more of them than this one would.
        """
        if not self.requests:
            self._short_at = time.monotonic()
        if len(self.requests) >= (MOST_IN_LASTING_QUEUE if self._lasts() else MOST_WAITING):
            self._refuse_one_of_most(request)
        self.requests.append(request)

    def _refuse_one_of_most(self, request: _Request) -> None:
        """Make room at the cost of the caller with most requests, as in FQ-CoDel (RFC 8290)."""
        numbers = Counter(each.caller for each in self.requests)
        most = max(numbers, key=numbers.__getitem__, default=request.caller)
        if numbers[most] <= numbers[request.caller] + 1:
            raise TooBusy
        last = max((each for each in self.requests if each.caller == most), key=lambda one: one.due)
        self.requests.remove(last)
        last.is_refused = True
        last.decided.set()

    def take(self, request: _Request) -> None:
        self.requests.remove(request)
        now = time.monotonic()
        # One that lasts and is kept short has short waits too: it ends only when it is empty.
        if now - (request.due - request.yields_s) <= A_MOMENT_S and not self._lasts():
            self._short_at = now

    def _lasts(self) -> bool:
        return time.monotonic() - self._short_at > LASTING_S


class _Admission:
    """The requests of this process that wait for admission, and those that count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Of each kind, so that many writes do not keep pages out.
        self._queues: defaultdict[float, _Queue] = defaultdict(_Queue)
        self._counting: set[_Request] = set()

    def begin(self, request: _Request) -> None:
        """Wait until it is this request's turn.

        Raises:
            TooBusy: Too many wait already, or its turn did not come in time.
        """
        with self._lock:
            queue = self._queues[request.yields_s]
            queue.add(request)
            self._admit()
        until = time.monotonic() + settings.DB_POOL_WAIT_S
        # Nothing tells when a request stops counting because it takes long.
        while not request.decided.wait(_LOOK_AGAIN_S):
            with self._lock:
                self._admit()
                if time.monotonic() > until and not request.decided.is_set():
                    queue.requests.remove(request)
                    raise TooBusy
        if request.is_refused:
            raise TooBusy

    def _admit(self) -> None:
        now = time.monotonic()
        self._counting = {each for each in self._counting if each.counts_until > now}
        while (request := self._next()) is not None:
            self._queues[request.yields_s].take(request)
            self._count(request)
            request.decided.set()

    def _next(self) -> _Request | None:
        """Of those for which there is a place, the one due first."""
        reads = sum(each.is_read for each in self._counting)
        others = len(self._counting) - reads
        free = {True: reads < READS_AT_ONCE, False: others < OTHERS_AT_ONCE}
        waiting = (each for queue in self._queues.values() for each in queue.requests)
        return min(
            (each for each in waiting if free[each.is_read]),
            key=lambda each: each.due,
            default=None,
        )

    def _count(self, request: _Request) -> None:
        request.counts_until = time.monotonic() + COUNTS_S
        self._counting.add(request)

    def go_on(self, request: _Request) -> None:
        """After a wait, at once: it may have locked a row for which one of the others waits."""
        with self._lock:
            if not request.is_over:
                self._count(request)

    def pause(self, request: _Request) -> None:
        with self._lock:
            self._counting.discard(request)
            self._admit()

    def end(self, request: _Request) -> None:
        request.is_over = True
        self.pause(request)


# Digests of keys and sessions, oldest first.
MOST_KNOWN = 10_000
_known: dict[str, None] = {}
_admission = _Admission()
_request: ContextVar[_Request | None] = ContextVar("request", default=None)


def caller_with(credential: str) -> str:
    """Who sends this credential; empty unless it has opened something before.

    Anybody can make up any number of them: all whom nobody knows count as one caller.
    """
    digest = _digest(credential)
    return digest if digest in _known else ""


def note_caller(credential: str) -> None:
    """The credential has opened something: whoever sends it counts as a caller of their own."""
    digest = _digest(credential)
    if digest not in _known:
        while len(_known) >= MOST_KNOWN:
            _known.pop(next(iter(_known)), None)
        _known[digest] = None


def _digest(credential: str) -> str:
    return hashlib.sha256(credential.encode()).hexdigest()


@contextmanager
def admitted(*, yields_s: float, caller: str = "") -> Iterator[None]:
    """Run the block when it is this request's turn: of its kind, the earliest deadline.

    Args:
        yields_s: `READS_YIELD_S` for what programs read, which has places of its own.
            `PAGES_YIELD_S` or `WRITES_YIELD_S` for all else: one of the other kind that comes up
            to so many seconds later may go first.
        caller: Who sent it, such as a digest of the key; empty for all whom nobody knows.

    Raises:
        TooBusy: Too many of its kind wait already, or this one has waited for LOCI_DB_POOL_WAIT_S.
            Of a full queue a caller with fewer requests takes the place of one with more.
    """
    request = _Request(time.monotonic() + yields_s, yields_s, caller)
    _admission.begin(request)
    before = _request.set(request)
    try:
        yield
    finally:
        _admission.end(request)
        _request.reset(before)


@contextmanager
def waiting() -> Iterator[None]:
    """Others are admitted while the block waits, such as for a server."""
    request = _request.get()
    if request is None:
        yield
        return
    _admission.pause(request)
    try:
        yield
    finally:
        _admission.go_on(request)

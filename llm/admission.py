"""Admission: a process works on a few requests at a time, on recalls first.

Threads of a process share Python's lock, so that each of many that run side by side waits for all
others. One that waits, such as for a model, makes room meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from django.conf import settings

# One computes while others wait for the database or the embedder.
AT_ONCE = 3
# After that a request no longer counts: it may be long, or wait for a row that others have locked.
COUNTS_S = 1.0
# An agent's turn waits for what a program reads, such as a recall. A write takes several times as
# long as a page.
READS_YIELD_S, PAGES_YIELD_S, WRITES_YIELD_S = 0.0, 0.5, 1.0
# Of those that come first, and of all others: about five seconds of work.
MOST_WAITING = 50
_LOOK_AGAIN_S = 0.25


class TooBusy(Exception):
    """So many requests wait already, or have waited for so long, that this one is refused."""


@dataclass(eq=False, slots=True)
class _Request:
    """
    Attributes:
        due: Those with an earlier one are admitted first; of the monotonic clock, as all times.
        is_first: Whether it yields to nobody; one place is kept for those that do not.
        counts_until: Set when it is admitted, and again when it goes on after a wait.
    """

    due: float
    is_first: bool
    counts_until: float = 0.0
    is_over: bool = False
    admitted: threading.Event = field(default_factory=threading.Event)


class _Admission:
    """The requests of this process that wait for admission, and those that count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: list[_Request] = []
        self._counting: set[_Request] = set()

    def begin(self, request: _Request) -> None:
        """Wait until it is this request's turn.

        Raises:
            TooBusy: Too many wait already, or its turn did not come in time.
        """
        with self._lock:
            alike = [each for each in self._queue if each.is_first == request.is_first]
            if len(alike) >= MOST_WAITING:
                raise TooBusy
            self._queue.append(request)
            self._admit()
        until = time.monotonic() + settings.DB_POOL_WAIT_S
        # Nothing tells when a request stops counting because it takes long.
        while not request.admitted.wait(_LOOK_AGAIN_S):
            with self._lock:
                self._admit()
                if time.monotonic() > until and not request.admitted.is_set():
                    self._queue.remove(request)
                    raise TooBusy

    def _admit(self) -> None:
        now = time.monotonic()
        self._counting = {each for each in self._counting if each.counts_until > now}
        while (request := self._next()) is not None:
            self._queue.remove(request)
            self._count(request)
            request.admitted.set()

    def _next(self) -> _Request | None:
        """The one that is due first, of those for which there is a place."""
        if len(self._counting) >= AT_ONCE:
            return None
        others = sum(not each.is_first for each in self._counting)
        among = [each for each in self._queue if each.is_first or others < AT_ONCE - 1]
        return min(among, key=lambda each: each.due, default=None)

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


_admission = _Admission()
_request: ContextVar[_Request | None] = ContextVar("request", default=None)


@contextmanager
def admitted(*, yields_s: float) -> Iterator[None]:
    """Run the block when it is this request's turn: the earliest deadline first.

    Args:
        yields_s: Others that come up to so many seconds later may go first; of those that come
            after that, none does.

    Raises:
        TooBusy: Fifty of its kind wait already, or this one has waited for LOCI_DB_POOL_WAIT_S.
    """
    request = _Request(time.monotonic() + yields_s, is_first=yields_s == 0)
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

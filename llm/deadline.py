"""A deadline for all model calls within a block, and for local work that may stop there.

Also limits how many threads of a process do long local work at the same time.

A timeout limits only each silence of a server. It does not stop servers that send whitespace to
keep the connection alive, nor repeated calls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2


@dataclass(frozen=True, slots=True)
class Deadline:
    seconds: float
    at: float

    @property
    def left_s(self) -> float:
        return self.at - time.monotonic()


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
_is_interruptible: ContextVar[bool] = ContextVar("is_interruptible", default=False)


class DeadlinePassed(Exception):
    """The deadline passed amid interruptible work, which was not finished."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Calls in the block that are unfinished by then raise `ModelUnavailable`.

    Disable retries: their backoff does not observe the deadline.
    """
    before = _current.set(Deadline(seconds, time.monotonic() + seconds))
    try:
        yield
    finally:
        _current.reset(before)


def current() -> Deadline | None:
    return _current.get()


def is_over() -> bool:
    """Whether there is a deadline and it has passed."""
    deadline = current()
    return deadline is not None and deadline.left_s <= 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Local work in the block stops at the deadline, if there is one.

    Raises:
        DeadlinePassed: It has passed already, or passed meanwhile.
    """
    before = _is_interruptible.set(True)
    try:
        check()
        yield
    finally:
        _is_interruptible.reset(before)


def check() -> None:
    """Call it between steps of work that takes seconds.

    Raises:
        DeadlinePassed: The work is interruptible, and its deadline has passed.
    """
    if _is_interruptible.get() and is_over():
        raise DeadlinePassed


class _Piece:
    """A piece of work; it counts from when it began until it waits, is over, or takes long."""

    def __init__(self) -> None:
        self.began = 0.0
        self.is_over = False


class _Work:
    """The pieces of work in this process that count."""

    def __init__(self) -> None:
        self._changed = threading.Condition()  # Its lock may be taken again.
        self._pieces: set[_Piece] = set()

    def begin(self, piece: _Piece) -> None:
        """Wait until fewer than `AT_ONCE` count, for `PATIENCE_S` at most."""
        until = time.monotonic() + PATIENCE_S
        with self._changed:
            while (now := time.monotonic()) < min(until, self._free_at()):
                self._changed.wait(min(until, self._free_at()) - now)
            self.go_on(piece)

    def _free_at(self) -> float:
        """When the next may begin, if none ends before."""
        began = sorted(piece.began for piece in self._pieces)
        return began[-AT_ONCE] + PATIENCE_S if len(began) >= AT_ONCE else 0.0

    def go_on(self, piece: _Piece) -> None:
        with self._changed:
            if not piece.is_over:
                piece.began = time.monotonic()
                self._pieces.add(piece)

    def pause(self, piece: _Piece) -> None:
        with self._changed:
            self._pieces.discard(piece)
            self._changed.notify()

    def end(self, piece: _Piece) -> None:
        piece.is_over = True
        self.pause(piece)


# One computes while the other waits for the database or the embedder. With one alone, a process
# stored a third fewer messages a second; with many, a recall beside them took twice as long.
AT_ONCE = 2
# After that a piece no longer counts: it may be long, or wait for a row that others have locked.
PATIENCE_S = 1.0
_work = _Work()
_piece: ContextVar[_Piece | None] = ContextVar("piece", default=None)


@contextmanager
def few_at_a_time() -> Iterator[None]:
    """Work in the block begins when fewer than two threads do such work, or after a second.

    All side by side they would slow each short request of others, because most of the work needs
    Python's lock.
    """
    piece = _Piece()
    before = _piece.set(piece)
    _work.begin(piece)
    try:
        yield
    finally:
        _work.end(piece)
        _piece.reset(before)


@contextmanager
def waiting() -> Iterator[None]:
    """Others may begin while the block waits, such as for a server."""
    piece = _piece.get()
    if piece is None:
        yield
        return
    _work.pause(piece)
    try:
        yield
    finally:
        # At once: the caller may have locked a row for which one of the others waits.
        _work.go_on(piece)


def enforce_on_body(response: httpx2.Response) -> None:
    """Event hook: stop reading the body at the deadline, if there is one."""
    deadline = current()
    if deadline is not None and isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _Body(response.stream, deadline)


class _Body(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        parts: Iterable[bytes] = self._stream
        for part in parts:
            if self._deadline.left_s <= 0:
                raise httpx2.ReadTimeout("The answer takes too long.")
            yield part

    def close(self) -> None:
        self._stream.close()

"""A deadline for all model calls within a block, and for local work that may stop there.

A timeout limits only each silence of a server. It does not stop servers that send whitespace to
keep the connection alive, nor repeated calls.
"""

from __future__ import annotations

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

    No retry is sent after it. Only the library's backoff after a try that fails shortly before it
    may end later: half a second after the first try, at most eight seconds.
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

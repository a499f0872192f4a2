"""The id of the current request, for its log lines and those of its tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

HEADER = "X-Request-ID"
# The header of a task's message.
OF_TASK = "request_id"
# Ids of clients go into log lines and headers: no blanks, quotes or control characters.
_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_current: ContextVar[str] = ContextVar("request id", default="")


def current() -> str:
    """The id of the current request or task; empty outside of both."""
    return _current.get()


def set_current(request_id: str) -> None:
    """Set the id for the rest of this thread or task."""
    _current.set(request_id)


@contextmanager
def use(request_id: str) -> Iterator[None]:
    before = current()
    set_current(request_id)
    try:
        yield
    finally:
        # Not by a token: what is awaited within may have run in a copy of this context.
        set_current(before)


def taken_or_made(sent: str) -> str:
    """The id that a client or a proxy sent, if it is fit for a log; else a new one."""
    return sent if _SANE.fullmatch(sent) else uuid4().hex


def add_to_task(headers: dict[str, Any] | None = None, **_signal: Any) -> None:
    """Add the id to a task that is being queued."""
    if headers is not None and current():
        headers[OF_TASK] = current()

"""A record of what a call sends to another machine: host, size, and references to its parts.

The record has no texts: the reference to a deleted message or fact leads nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llm.providers import Endpoint

if TYPE_CHECKING:  # It takes a tenth of a second to import.
    import httpx2

# References beyond this number are only counted.
MOST_REFERENCES = 1000
# A reference to what is not in the database: Loci's own instructions, by name.
INSTRUCTIONS = "instructions"

_references: ContextVar[tuple[str, ...]] = ContextVar("references", default=())


@dataclass
class SentRecord:
    """What one call sends, and how often.

    Attributes:
        host: The host, with an unusual port.
        characters: The length of all messages or texts.
        references: Such as `drawer:12` or `instructions:filing`.
        requests: How often it was sent; 0 if no connection was made, or nothing left this process.
    """

    host: str = ""
    characters: int = 0
    references: tuple[str, ...] = ()
    requests: int = 0

    def trace(self, event: str, _info: Mapping[str, object]) -> None:
        """Called by the HTTP library; the names of its events end alike for all protocols."""
        if event.endswith("send_request_headers.started"):
            self.requests += 1


_current: ContextVar[SentRecord | None] = ContextVar("sent_record", default=None)


def references(kind: str, keys: Iterable[object]) -> list[str]:
    return [f"{kind}:{key}" for key in keys]


@contextmanager
def made_of(more: Iterable[str]) -> Iterator[None]:
    """Add references to the records of calls in the block; nested blocks add up."""
    before = _references.get()
    _references.set(tuple(dict.fromkeys((*before, *more))))
    try:
        yield
    finally:
        _references.set(before)


def record_of(endpoint: Endpoint, texts: Iterable[str]) -> SentRecord:
    """The record of a call to this model with these texts."""
    characters = sum(map(len, texts))
    return SentRecord(endpoint.host[:255], characters, _references.get()[:MOST_REFERENCES])


@contextmanager
def counting(record: SentRecord) -> Iterator[None]:
    """Count the requests of this block as sent."""
    before = _current.get()
    _current.set(record)
    try:
        yield
    finally:
        _current.set(before)


def follow(request: httpx2.Request) -> None:
    """For an HTTP client's `request` hooks."""
    current = _current.get()
    if current is not None:
        request.extensions["trace"] = current.trace

"""Read a model's reply in OpenAI's chat format from the relayed bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

# Characters. Anything longer is relayed, but not filed.
LONGEST_REPLY = 1_000_000
# Bytes of one event, to bound memory if a server never ends a line.
LONGEST_LINE = 16 << 20


class ReplyReader(Protocol):
    """
    Attributes:
        text: The first choice's text so far.
        usage: As reported, if at all.
        whole: Whether the reply is complete.
    """

    @property
    def text(self) -> str: ...

    usage: Any
    model: str
    whole: bool


class EventData:
    """Splits a stream of server-sent events, and yields the data of each line of data."""

    def __init__(self) -> None:
        self._line = bytearray()

    def read(self, piece: bytes) -> Iterator[bytes]:
        self._line += piece
        if b"\n" not in piece:
            if len(self._line) > LONGEST_LINE:
                self._line.clear()
            return
        *lines, rest = self._line.split(b"\n")
        self._line = bytearray(rest)
        for line in lines:
            field, _, data = line.partition(b":")
            if field == b"data":
                yield bytes(data.strip())


class EventReader:
    """Reads a stream of server-sent events; skips unknown ones."""

    def __init__(self) -> None:
        self.usage: Any = None
        self.model = ""
        self.whole = False
        self._parts: list[str] = []
        self._length = 0
        self._events = EventData()

    @property
    def text(self) -> str:
        return _storable("".join(self._parts))

    def read(self, piece: bytes) -> None:
        for data in self._events.read(piece):
            self._read_data(data)

    def _read_data(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.whole = True
            return
        chunk = as_object(data)
        self.usage = chunk.get("usage") or self.usage
        self.model = _text(chunk.get("model")) or self.model
        choice = first_choice(chunk)
        if choice.get("finish_reason"):
            self.whole = True
        delta = choice.get("delta")
        text = _text(delta.get("content")) if isinstance(delta, Mapping) else ""
        if text and self._length < LONGEST_REPLY:
            self._length += len(text)
            self._parts.append(text)


class BodyReader:
    """Reads a complete, unstreamed response."""

    def __init__(self, body: bytes) -> None:
        chunk = as_object(body)
        choice = first_choice(chunk)
        message = choice.get("message")
        text = _text(message.get("content")) if isinstance(message, Mapping) else ""
        self.text = _storable(text[:LONGEST_REPLY])
        self.usage: Any = chunk.get("usage")
        self.model = _text(chunk.get("model"))
        self.whole = True


def as_object(data: bytes) -> Mapping[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return chunk if isinstance(chunk, Mapping) else {}


def first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """The choice with index 0; others are ignored."""
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
            return choice
    return {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _storable(text: str) -> str:
    """Drop NUL, join surrogate pairs, replace lone surrogates by a question mark."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "")

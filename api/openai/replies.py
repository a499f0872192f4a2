"""The reply's words and count, gathered from bytes that are handed on as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

# Characters. More is handed on, and not kept.
LONGEST_REPLY = 1_000_000
# Bytes of one event. A server that never ends a line must not fill the memory.
LONGEST_LINE = 16 << 20


class ReplyReader(Protocol):
    """
    Attributes:
        text: What came of the first choice.
        usage: As it was told, if it was.
        whole: Whether the reply came to its end.
    """

    @property
    def text(self) -> str: ...

    usage: Any
    model: str
    whole: bool


class EventReader:
    """Reads a stream of events; what is no event of a chat is passed over."""

    def __init__(self) -> None:
        self.usage: Any = None
        self.model = ""
        self.whole = False
        self._parts: list[str] = []
        self._length = 0
        self._line = bytearray()

    @property
    def text(self) -> str:
        return _storable("".join(self._parts))

    def read(self, piece: bytes) -> None:
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
                self._read_data(bytes(data.strip()))

    def _read_data(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.whole = True
            return
        told = _object(data)
        self.usage = told.get("usage") or self.usage
        self.model = _text(told.get("model")) or self.model
        choice = _first_choice(told)
        if choice.get("finish_reason"):
            self.whole = True
        delta = choice.get("delta")
        text = _text(delta.get("content")) if isinstance(delta, Mapping) else ""
        if text and self._length < LONGEST_REPLY:
            self._length += len(text)
            self._parts.append(text)


class BodyReader:
    """Reads an answer that comes whole."""

    def __init__(self, body: bytes) -> None:
        told = _object(body)
        choice = _first_choice(told)
        message = choice.get("message")
        text = _text(message.get("content")) if isinstance(message, Mapping) else ""
        self.text = _storable(text[:LONGEST_REPLY])
        self.usage: Any = told.get("usage")
        self.model = _text(told.get("model"))
        self.whole = True


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, Mapping) else {}


def _first_choice(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of several that were asked for, the first is kept."""
    choices = told.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
            return choice
    return {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _storable(text: str) -> str:
    """Without NUL; halves of a character put together, a question mark for one without another."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "")

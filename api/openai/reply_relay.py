"""The proxy's replies: a model's, relayed and read; without a model, quotes from the palace. In the
format that the program asked for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol
from uuid import uuid4

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone

from api.openai.access import error_body
from api.openai.chat_request import OWN_MODEL, text_of
from api.openai.exchange import Exchange
from chat.models import Message
from chat.prompt import reply_without_model
from llm.errors import LLMError
from llm.request_forwarding import ForwardedResponse
from llm.tokens import count_tokens
from settings_app import request_id
from settings_app.models import settings_of
from settings_app.time_zone import zone_named

logger = logging.getLogger(__name__)

# Characters. Anything longer is relayed, but not filed.
LONGEST_REPLY = 1_000_000
# Bytes of one event, to bound memory if a server never ends a line.
LONGEST_LINE = 16 << 20


class ReplyFormat(Protocol):
    """Turns a reply in OpenAI's chat format into what the program reads."""

    def whole(self, body: bytes) -> bytes:
        """
        Raises:
            Problem: 502, it is not in the chat format.
        """

    def read(self, piece: bytes) -> Iterable[bytes]:
        """The pieces to send for a piece of the stream, which has arrived."""

    def end(self) -> Iterable[bytes]:
        """The last bytes, once the stream has ended and the reply is filed."""

    def fail(self, error: LLMError) -> Iterable[bytes]:
        """The last bytes if the stream breaks off."""


class AsItCame:
    """The chat format itself, byte by byte."""

    def whole(self, body: bytes) -> bytes:
        return body

    def read(self, piece: bytes) -> Iterable[bytes]:
        yield piece

    def end(self) -> Iterable[bytes]:
        return ()

    def fail(self, error: LLMError) -> Iterable[bytes]:
        body = error_body(str(error), error.code, 502)
        yield b"data: " + json.dumps(body).encode() + b"\n\n"


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
        self.model = _text_or_empty(chunk.get("model")) or self.model
        choice = first_choice(chunk)
        if choice.get("finish_reason"):
            self.whole = True
        delta = choice.get("delta")
        text = _text_or_empty(delta.get("content")) if isinstance(delta, Mapping) else ""
        if text and self._length < LONGEST_REPLY:
            self._length += len(text)
            self._parts.append(text)


class BodyReader:
    """Reads a complete, unstreamed response."""

    def __init__(self, body: bytes) -> None:
        chunk = as_object(body)
        choice = first_choice(chunk)
        message = choice.get("message")
        text = _text_or_empty(message.get("content")) if isinstance(message, Mapping) else ""
        self.text = _storable(text[:LONGEST_REPLY])
        self.usage: Any = chunk.get("usage")
        self.model = _text_or_empty(chunk.get("model"))
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


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _storable(text: str) -> str:
    """Drop NUL, join surrogate pairs, replace lone surrogates by a question mark."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "")


class Relay(AsyncIterator[bytes]):
    """A response body: the server iterates it, then always closes it."""

    def __init__(
        self, exchange: Exchange, answer: ForwardedResponse, reply_format: ReplyFormat
    ) -> None:
        self._reader = exchange.reader = EventReader()
        self._exchange = exchange
        self._answer = answer
        self._format = reply_format
        self._pieces = self._read()
        self._thread = ThreadPoolExecutor(
            max_workers=1,
            thread_name_prefix="relay",
            initializer=request_id.set_current,
            initargs=(request_id.current(),),
        )
        self._lock = threading.Lock()
        self._hung_up = False

    async def __anext__(self) -> bytes:
        loop = asyncio.get_running_loop()
        piece = await loop.run_in_executor(self._thread, next, self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def close(self) -> None:
        """Idempotent; callable from any thread."""
        with self._lock:
            if self._hung_up:
                return
            self._hung_up = True
        self._answer.abort()
        self._thread.submit(self._end)
        self._thread.shutdown(wait=False)

    def _read(self) -> Generator[bytes]:
        try:
            for piece in self._answer.pieces():
                self._reader.read(piece)
                yield from self._format.read(piece)
        except LLMError as error:
            if self._hung_up:
                return
            self._exchange.outcome = error.code
            # Before the event: a client that reads it disconnects, which is not a cancellation.
            self._finish(Message.Status.FAILED)
            yield from self._format.fail(error)
            return
        self._finish(Message.Status.FAILED)
        yield from self._format.end()

    def _end(self) -> None:
        try:
            self._pieces.close()
            self._finish(Message.Status.STOPPED)
        except Exception:
            logger.exception("A stream could not be closed.")

    def _finish(self, status: Message.Status) -> None:
        self._answer.close()
        self._exchange.finish(status)


def quoted(exchange: Exchange, reply_format: ReplyFormat) -> HttpResponseBase:
    """Reply with the closest messages. The reply is not filed: the palace has them already."""
    text, chat_request = _text(exchange), exchange.chat_request
    usage = _usage(exchange, text)
    if not chat_request.streams:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        whole = {**_head("chat.completion"), "choices": [choice], "usage": usage}
        body = reply_format.whole(json.dumps(whole).encode())
        exchange.finish()
        return HttpResponse(body, content_type="application/json")
    events = _events(text, usage if chat_request.wants_usage else None)
    pieces = [piece for event in events for piece in reply_format.read(event)]
    exchange.finish()
    pieces += reply_format.end()
    return StreamingHttpResponse(_sent(pieces), content_type="text/event-stream")


def _text(exchange: Exchange) -> str:
    found = exchange.found
    hits = found.hits if found else (() if exchange.recalls else None)
    chosen = settings_of(exchange.owner_id)
    with timezone.override(zone_named(chosen.time_zone)):
        # Hits that were not asked for are not an answer.
        hits = () if found and found.is_opening else hits
        question = exchange.history.question
        return reply_without_model(exchange.palace, question, hits, keeps=exchange.remembers)


def _head(kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": OWN_MODEL,
    }


def _usage(exchange: Exchange, text: str) -> dict[str, int]:
    texts = (text_of(message.get("content")) for message in exchange.chat_request.messages)
    prompt, completion = sum(map(count_tokens, texts)), count_tokens(text)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _events(text: str, usage: dict[str, int] | None) -> list[bytes]:
    head = _head("chat.completion.chunk")
    deltas: list[tuple[dict[str, str], str | None]] = [
        ({"role": "assistant", "content": ""}, None),
        ({"content": text}, None),
        ({}, "stop"),
    ]
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in deltas
    ]
    if usage:
        chunks.append({**head, "choices": [], "usage": usage})
    return [f"data: {event}\n\n".encode() for event in (*map(json.dumps, chunks), "[DONE]")]


async def _sent(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece

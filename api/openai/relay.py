"""Relay a model's stream to the client.

A dedicated thread reads it, so that a silent model blocks nobody else. When the client
disconnects, the model's stream ends at once, and the reply so far is filed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Generator
from concurrent.futures import ThreadPoolExecutor

from api.openai.errors import error_body
from api.openai.exchange import Exchange
from api.openai.replies import EventReader
from chat.models import Message
from llm.errors import LLMError
from llm.request_forwarding import ForwardedResponse

logger = logging.getLogger(__name__)


class Relay(AsyncIterator[bytes]):
    """A response body: the server iterates it, then always closes it."""

    def __init__(self, exchange: Exchange, answer: ForwardedResponse) -> None:
        self._reader = exchange.reader = EventReader()
        self._exchange = exchange
        self._answer = answer
        self._pieces = self._read()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="relay")
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
                yield piece
        except LLMError as error:
            if self._hung_up:
                return
            self._exchange.outcome = error.code
            body = error_body(str(error), error.code, 502)
            # Before the event: a client that reads it disconnects, which is not a cancellation.
            self._finish(Message.Status.FAILED)
            yield b"data: " + json.dumps(body).encode() + b"\n\n"
        self._finish(Message.Status.FAILED)

    def _end(self) -> None:
        try:
            self._pieces.close()
            self._finish(Message.Status.STOPPED)
        except Exception:
            logger.exception("A stream could not be closed.")

    def _finish(self, status: Message.Status) -> None:
        self._answer.close()
        self._exchange.finish(status)

"""A program's own request, passed on to a chat model as it is. What comes back is handed on
unchanged, an error too; nothing is retried, as whoever asks does that by itself."""

from __future__ import annotations

import atexit
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import openai
from django.conf import settings

from llm import client
from llm.asking import count
from llm.errors import ModelRefused, ModelUnavailable
from llm.messages import Message
from llm.providers import Endpoint
from llm.transport import MAX_ANSWER_BYTES, guarded_client
from llm.usage import Meter

# A model may think for as long before the first word of a whole answer; as OpenAI's clients wait.
LONGEST_SILENCE_S = 600
# A count beyond that is nonsense, and no column would hold it.
_MOST_TOKENS = 2**31 - 1


class Passed:
    """An answer whose head has come. Read it, then close it."""

    def __init__(self, response: httpx2.Response, endpoint: Endpoint) -> None:
        self.status = response.status_code
        # Names in lower case.
        self.headers: Mapping[str, str] = dict(response.headers.items())
        self._response = response
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._closed = False

    @property
    def is_error(self) -> bool:
        return self.status >= 400

    def pieces(self) -> Iterator[bytes]:
        """The body as it arrives.

        Raises:
            ModelUnavailable: it breaks off.
        """
        with _in_our_words(self._endpoint, self._response.request):
            # Read so, it is not closed behind our back: see `hang_up`.
            parts: Iterable[bytes] = cast(httpx2.SyncByteStream, self._response.stream)
            yield from parts

    def whole(self) -> bytes:
        """The body.

        Raises:
            ModelUnavailable: it breaks off, or does not end.
        """
        parts, size = [], 0
        for part in self.pieces():
            parts.append(part)
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise ModelUnavailable(f"{self._endpoint} sends an answer that does not end.")
        return b"".join(parts)

    def hang_up(self) -> None:
        """From any thread: whoever waits for the next piece waits no more."""
        with self._lock:
            # Once it is closed, its connection may carry somebody else's answer.
            if self._closed:
                return
            stream = self._response.extensions["network_stream"]
            with suppress(OSError):  # It has ended by itself.
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """In the thread that reads."""
        with self._lock:
            self._closed = True
            self._response.close()


def pass_on(endpoint: Endpoint, method: str, path: str, body: bytes | None = None) -> Passed:
    """Send it and wait for the answer's head.

    Args:
        path: Below the base URL, with the first slash.

    Raises:
        ModelUnavailable: nobody answers there.
        ModelRefused: the address is none, or one that may not be called.
    """
    http = _client(os.getpid(), endpoint.of_a_user and not settings.PRIVATE_PROVIDERS)
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    address = endpoint.base_url.rstrip("/") + path
    timeout = httpx2.Timeout(LONGEST_SILENCE_S, connect=client.CONNECT_TIMEOUT_S)
    with client.translated(endpoint):
        request = http.build_request(
            method, address, content=body, headers=headers, timeout=timeout
        )
    with _in_our_words(endpoint, request):
        passed = Passed(http.send(request, stream=True), endpoint)
    if 300 <= passed.status < 400:
        passed.close()
        said = f"{endpoint} only points to another address; set the address that it leads to."
        raise ModelRefused(said)
    if passed.headers.get("content-encoding", "identity") != "identity":
        passed.close()
        raise ModelUnavailable(f"{endpoint} sends a compressed answer, which was not asked for.")
    return passed


def fill_meter(meter: Meter, told: Any, prompt: list[Message], text: str) -> None:
    """What an answer's `usage` says, as far as it makes sense; the rest is estimated."""
    sensible = {
        name: value
        for name, value in (told.items() if isinstance(told, Mapping) else ())
        if isinstance(value, int | float) and 0 <= value <= _MOST_TOKENS
    }
    count(meter, SimpleNamespace(**sensible), prompt, text)


@lru_cache(maxsize=2)
def _client(_process_id: int, guarded: bool) -> httpx2.Client:  # noqa: FBT001 - as llm.client.
    http = guarded_client() if guarded else openai.DefaultHttpxClient(follow_redirects=False)
    atexit.register(http.close)
    return http


@contextmanager
def _in_our_words(endpoint: Endpoint, request: httpx2.Request) -> Iterator[None]:
    with client.translated(endpoint, timeout_s=LONGEST_SILENCE_S):
        try:
            yield
        except httpx2.TimeoutException:
            raise openai.APITimeoutError(request) from None
        except httpx2.RequestError:
            raise openai.APIConnectionError(request=request) from None

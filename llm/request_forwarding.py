"""Forward a program's request to a chat model and return its response unchanged, errors
included. Nothing is retried; the program can do that."""

from __future__ import annotations

import atexit
import json
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, cast

import httpx2
from django.conf import settings

from llm import client, sent
from llm.chat_calls import count
from llm.errors import ModelRefused, ModelUnavailable
from llm.messages import Message
from llm.providers import Endpoint
from llm.secrets_in_text import mask_within, masks_toward
from llm.transport import MAX_ANSWER_BYTES
from llm.usage import Meter

# The longest wait for a complete answer; the default of OpenAI's clients.
LONGEST_SILENCE_S = 600


class ForwardedResponse:
    """A response whose headers have arrived. Read its body, then close it."""

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
        """Yield the body as it arrives.

        Raises:
            ModelUnavailable: the connection breaks.
        """
        with _in_our_words(self._endpoint, self._response.request):
            # Reading the raw stream does not close it implicitly: see `abort`.
            parts: Iterable[bytes] = cast(httpx2.SyncByteStream, self._response.stream)
            yield from parts

    def whole(self) -> bytes:
        """The body.

        Raises:
            ModelUnavailable: the connection breaks, or the body is too large.
        """
        parts, size = [], 0
        for part in self.pieces():
            parts.append(part)
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise ModelUnavailable(f"{self._endpoint} sends an endless answer.")
        return b"".join(parts)

    def abort(self) -> None:
        """Unblock the reading thread; callable from any thread."""
        with self._lock:
            # Once closed, the connection may be reused for another response.
            if self._closed:
                return
            stream = self._response.extensions["network_stream"]
            with suppress(OSError):  # It has ended already.
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Call it in the reading thread."""
        with self._lock:
            self._closed = True
            self._response.close()


def forward_request(
    endpoint: Endpoint, method: str, path: str, body: bytes | None = None
) -> ForwardedResponse:
    """Send the request and wait for the response's headers.

    Args:
        path: Below the base URL, starting with a slash.

    Raises:
        ModelUnavailable: the server does not respond.
        ModelRefused: the address is invalid or not allowed.
    """
    http = _client(os.getpid(), endpoint.of_a_user and not settings.PRIVATE_PROVIDERS)
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    address = endpoint.base_url.rstrip("/") + path
    if body is not None and masks_toward(endpoint.base_url):
        body = json.dumps(mask_within(json.loads(body))).encode()
    timeout = httpx2.Timeout(LONGEST_SILENCE_S, connect=client.CONNECT_TIMEOUT_S)
    with client.translated(endpoint):
        request = http.build_request(
            method, address, content=body, headers=headers, timeout=timeout
        )
    with _in_our_words(endpoint, request):
        passed = ForwardedResponse(http.send(request, stream=True), endpoint)
    if 300 <= passed.status < 400:
        passed.close()
        said = f"{endpoint} redirects to another address; configure that address instead."
        raise ModelRefused(said)
    if passed.headers.get("content-encoding", "identity") != "identity":
        passed.close()
        raise ModelUnavailable(
            f"{endpoint} sends a compressed answer, although none was requested."
        )
    return passed


def fill_meter(
    meter: Meter, reported: Any, prompt: list[Message], text: str, endpoint: Endpoint
) -> None:
    """Fill the meter from a response's `usage`, which may be anything."""
    named = SimpleNamespace(**reported) if isinstance(reported, Mapping) else None
    count(meter, named, prompt, text, endpoint)


@lru_cache(maxsize=2)
def _client(_process_id: int, guarded: bool) -> httpx2.Client:  # noqa: FBT001 - as llm.client.
    import openai  # noqa: PLC0415 - see llm.client.

    http = client.guarded_client() if guarded else openai.DefaultHttpxClient(follow_redirects=False)
    http.event_hooks["request"].append(sent.follow)
    atexit.register(http.close)
    return http


@contextmanager
def _in_our_words(endpoint: Endpoint, request: httpx2.Request) -> Iterator[None]:
    import openai  # noqa: PLC0415 - see llm.client.

    with client.translated(endpoint, timeout_s=LONGEST_SILENCE_S):
        try:
            yield
        except httpx2.TimeoutException:
            raise openai.APITimeoutError(request) from None
        except httpx2.RequestError:
            raise openai.APIConnectionError(request=request) from None

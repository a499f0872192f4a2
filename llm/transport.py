"""An HTTP transport for users' own models that cannot reach private networks.

See `llm.allowed_addresses`.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2
import openai

from llm import allowed_addresses, deadline

# Limit of one response's size, so that an endless one does not fill the memory.
MAX_ANSWER_BYTES = 64 * 2**20
# A name may have any number of addresses, each of which may time out.
ADDRESSES_TRIED = 4

Resolve = Callable[[str, int], list[str]]
IsAllowed = Callable[[str], bool]


class AddressRefused(openai.OpenAIError):
    """The address is not allowed. A subclass of the library's error, which it does not retry."""


class GuardedTransport(httpx2.BaseTransport):
    """Connects to public addresses only, never through a proxy, which would resolve names itself.

    Uses only the libraries' public API, so that a change of internals fails closed.
    """

    def __init__(
        self,
        *,
        resolve: Resolve = allowed_addresses.resolve,
        is_allowed: IsAllowed = allowed_addresses.is_public,
    ) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            max_connections=100,
            max_keepalive_connections=10,
            keepalive_expiry=5,
            network_backend=_GuardedBackend(resolve, is_allowed),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx_errors():
            answer = self._pool.handle_request(outgoing)
        response = httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )
        if response.headers.get("Content-Encoding", "identity") != "identity":
            response.close()
            # Not requested; and a decompression bomb could fill the memory.
            raise httpx2.DecodingError("The answer is compressed.", request=request)
        return response

    def close(self) -> None:
        self._pool.close()


def guarded_client() -> httpx2.Client:
    """A client on the guarded transport. It does not follow redirects to unchecked addresses."""
    return openai.DefaultHttpxClient(
        transport=GuardedTransport(),
        follow_redirects=False,
        trust_env=False,
        headers={"Accept-Encoding": "identity"},
    )


class _GuardedBackend(httpcore2.NetworkBackend):
    def __init__(self, resolve: Resolve, is_allowed: IsAllowed) -> None:
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._sockets = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        started = time.monotonic()
        failure: Exception = httpcore2.ConnectError("The name has no address.")
        for address in self._addresses(host, port)[:ADDRESSES_TRIED]:
            left = None if timeout is None else timeout - (time.monotonic() - started)
            if left is not None and left <= 0:
                raise httpcore2.ConnectTimeout
            try:
                # An IP address, so that it is not resolved again.
                return _DeadlineStream(
                    self._sockets.connect_tcp(address, port, left, local_address, socket_options)
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    def _addresses(self, host: str, port: int) -> list[str]:
        """The host's addresses. One private address suffices to refuse the host."""
        try:
            found = self._resolve(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        if not all(map(self._is_allowed, found)):
            raise AddressRefused(allowed_addresses.not_allowed(host))
        return found


class _DeadlineStream(httpcore2.NetworkStream):
    """Enforces the deadline on each read and write; slowly sent headers break no timeout."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = _left(timeout, httpcore2.ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(timeout: float | None, late: type[Exception]) -> float | None:
    current = deadline.current()
    if current is None:
        return timeout
    if current.left_s <= 0:
        raise late("The answer takes too long.")
    return current.left_s if timeout is None else min(timeout, current.left_s)


class _Body(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        received = 0
        with _as_httpx_errors():
            for part in self._answer.iter_stream():
                received += len(part)
                if received > MAX_ANSWER_BYTES:
                    raise httpx2.ReadError("The answer does not end.")
                yield part

    def close(self) -> None:
        self._answer.close()


_CORE_ERRORS = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
)


@contextmanager
def _as_httpx_errors() -> Iterator[None]:
    """Translate httpcore's errors to the httpx errors of the same names."""
    try:
        yield
    except _CORE_ERRORS as error:
        kind: type[httpx2.TransportError] = getattr(httpx2, type(error).__name__)
        raise kind(str(error)) from error

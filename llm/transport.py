"""An HTTP transport for users' own models that cannot reach private networks (SSRF).

A user enters an address and this server calls it. Unguarded, any account could send requests to
whatever this server can reach: its database, the cloud's metadata service, its network. So only
public addresses are called, unless LOCI_PRIVATE_PROVIDERS is set.

`check_address` gives early feedback in forms, from the address alone. The protection itself is the
transport: it resolves the name, checks every result, and connects to the checked address, so that
DNS rebinding does not work.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2
from django.conf import settings

from llm import deadline
from llm.errors import ModelRefused

# The prefix of IPv4 addresses behind a NAT64 gateway.
_NAT64 = IPv6Network("64:ff9b::/96")
# Private networks that some version of Python's `is_global` accepts.
_NOT_PUBLIC = [
    ip_network("192.0.0.0/24"),  # IETF protocol assignments; some clouds' metadata services.
    ip_network("168.63.129.16/32"),  # Azure's host services.
    ip_network("::ffff:0:0/96"),  # IPv4-mapped addresses.
    ip_network("2002::/16"),  # 6to4.
    ip_network("fec0::/10"),  # Deprecated site-local addresses.
    ip_network("3fff::/20"),  # Documentation.
]
# Limit of one response's size, so that an endless one does not fill the memory.
MAX_ANSWER_BYTES = 64 * 2**20
# A name may have any number of addresses, each of which may time out.
ADDRESSES_TRIED = 4

Resolve = Callable[[str, int], list[str]]
IsAllowed = Callable[[str], bool]


def check_address(url: str) -> None:
    """
    Raises:
        ModelRefused: the address is private, as far as can be seen without resolving it.
    """
    if settings.PRIVATE_PROVIDERS:
        return
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        raise ModelRefused(not_allowed(host))
    try:
        # Accepts all numeric notations (127.1, 0x7f000001), never a name.
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return
    if not all(is_public(str(answer[4][0])) for answer in found):
        raise ModelRefused(not_allowed(host))


def resolve(host: str, port: int) -> list[str]:
    """Resolve the host to its distinct IP addresses.

    Raises:
        OSError: it has none, or resolution failed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("not a name") from None
    return list(dict.fromkeys(str(answer[4][0]) for answer in found))


def is_public(address: str) -> bool:
    """Whether the IP address is public, not this machine's or its network's."""
    number = ip_address(address)
    if isinstance(number, IPv6Address) and number in _NAT64:
        number = IPv4Address(int(number) & 0xFFFFFFFF)
    if number.is_multicast or number.is_reserved or not number.is_global:
        return False
    return not any(number in network for network in _NOT_PUBLIC)


def not_allowed(host: str) -> str:
    return (
        f"{host} is in this server's own network, which is not allowed for your own models. Use a "
        "public address, or ask the administrator to allow it (LOCI_PRIVATE_PROVIDERS)."
    )


class AddressRefused(Exception):
    """The address is not allowed. No error of a request, so that libraries do not try again."""


class GuardedTransport(httpx2.BaseTransport):
    """Connects to public addresses only, never through a proxy, which would resolve names itself.

    Uses only the libraries' public API, so that a change of internals fails closed.
    """

    def __init__(
        self,
        *,
        resolve: Resolve = resolve,
        is_allowed: IsAllowed = is_public,
    ) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=tls(),
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


@cache
def tls() -> ssl.SSLContext:
    """One for all clients: reading the system's certificates takes longer than many a request."""
    return httpx2.create_ssl_context()


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
            raise AddressRefused(not_allowed(host))
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

"""Sync and async connections to a server: address, key and httpx client."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from loci_client.calls import Call
from loci_client.errors import SetupError
from loci_client.exchange import Send, exchange
from loci_client.version import __version__

R = TypeVar("R")

BASE_URL = "http://localhost:8000"
# The server may call a model before it responds, for up to a minute.
TIMEOUT_S = 70.0
CONNECT_TIMEOUT_S = 10.0
RETRIES = 3


@dataclass(frozen=True, slots=True)
class Way:
    """
    Attributes:
        base_url: Without a trailing slash.
        timeout_s: For each attempt.
        retries: The number of retries.
    """

    base_url: str
    api_key: str = field(repr=False)
    timeout_s: float
    retries: int

    def headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.api_key}",
            "Accept": "application/json, application/problem+json",
            "User-Agent": f"loci-client/{__version__}",
        }

    def timeout(self) -> httpx.Timeout:
        return httpx.Timeout(self.timeout_s, connect=min(CONNECT_TIMEOUT_S, self.timeout_s))


def way_to(base_url: str | None, api_key: str | None, *, timeout_s: float, retries: int) -> Way:
    """
    Args:
        base_url: None for LOCI_URL, else port 8000 of this machine.
        api_key: None for LOCI_API_KEY.

    Raises:
        SetupError: there is no key, or an argument is invalid.
    """
    url = base_url or os.environ.get("LOCI_URL") or BASE_URL
    key = api_key or os.environ.get("LOCI_API_KEY") or ""
    if not key:
        raise SetupError(
            "A key is missing: pass api_key, or set LOCI_API_KEY. Make one on the server's page "
            "/settings/keys/."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SetupError("This is no key: it has characters that no key has. Copy it again.")
    if retries < 0 or timeout_s <= 0:
        raise SetupError("retries is 0 or more, and timeout_s a number of seconds above 0.")
    _check_url(url)
    return Way(url.rstrip("/"), key, timeout_s, retries)


def _check_url(url: str) -> None:
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL:
        read = httpx.URL("")
    if read.scheme not in ("http", "https") or not read.host or read.query or read.fragment:
        raise SetupError(f"base_url is an address such as {BASE_URL}, not {url!r:.100}.")


class Link:
    def __init__(self, way: Way) -> None:
        self.way = way
        self._http = httpx.Client(headers=way.headers(), timeout=way.timeout())

    def send(self, call: Call[R]) -> R:
        steps = exchange(call, base_url=self.way.base_url, retries=self.way.retries)
        outcome: httpx.Response | httpx.RequestError | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: R = end.value
                return result
            if isinstance(step, Send):
                outcome = self._answer(step)
            else:
                time.sleep(step.seconds)
                outcome = None

    def _answer(self, sent: Send) -> httpx.Response | httpx.RequestError:
        try:
            return self._http.request(
                sent.method, sent.url, headers=sent.headers, content=sent.content
            )
        except httpx.RequestError as error:
            return error

    def close(self) -> None:
        self._http.close()


class AsyncLink:
    """The async Link."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self._http = httpx.AsyncClient(headers=way.headers(), timeout=way.timeout())

    async def send(self, call: Call[R]) -> R:
        steps = exchange(call, base_url=self.way.base_url, retries=self.way.retries)
        outcome: httpx.Response | httpx.RequestError | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: R = end.value
                return result
            if isinstance(step, Send):
                outcome = await self._answer(step)
            else:
                await asyncio.sleep(step.seconds)
                outcome = None

    async def _answer(self, sent: Send) -> httpx.Response | httpx.RequestError:
        try:
            return await self._http.request(
                sent.method, sent.url, headers=sent.headers, content=sent.content
            )
        except httpx.RequestError as error:
            return error

    async def close(self) -> None:
        await self._http.aclose()

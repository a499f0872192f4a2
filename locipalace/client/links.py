"""Connections to a server: address, key, httpx client, and the protocol of a call with its retries.

The protocol does no I/O: `exchange` yields the next step and receives its outcome; the links, sync
and async, do the I/O.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

import httpx

from locipalace import __version__
from locipalace.client import calls
from locipalace.client.calls import Call
from locipalace.client.errors import BadAnswer, PalaceError, ServerAway, SetupError, problem_of

R = TypeVar("R")

BASE_URL = "http://localhost:8000"
# The server may call a model before it responds, for up to a minute.
TIMEOUT_S = 70.0
CONNECT_TIMEOUT_S = 10.0
RETRIES = 3

FIRST_WAIT_S = 0.5
MOST_WAIT_S = 30.0
# An earlier attempt is still running, for two minutes at most, or died, which the server knows
# after ten seconds. It asks to be polled every two seconds; we do so a little longer.
UNDER_WAY = "idempotency_in_progress"
MOST_ASKING = 65


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
            "User-Agent": f"locipalace/{__version__}",
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
    try:
        can_be = retries >= 0 and timeout_s > 0
    except TypeError:
        can_be = False
    if not can_be:
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


@dataclass(frozen=True, slots=True)
class Send:
    """A request to send; its outcome is the response or httpx's error."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


Step = Send | Wait
Received = httpx.Response | httpx.RequestError | None


def exchange(call: Call[R], *, base_url: str, retries: int) -> Generator[Step, Received, R]:
    """
    Raises:
        PalaceError: the server's problem, or no response, after the last retry.
    """
    sending = _sending(call, base_url)
    left = {"tries": retries, "asking": MOST_ASKING if retries else 0}
    while True:
        try:
            return _result(call, (yield sending))
        except PalaceError as failure:
            kind = "asking" if failure.code == UNDER_WAY else "tries"
            wait = _wait(failure, retries - left["tries"])
            if wait is None or not left[kind]:
                raise
            left[kind] -= 1
        yield wait


def _sending(call: Call[R], base_url: str) -> Send:
    headers, content = {}, None
    if call.body is not None:
        headers["Content-Type"] = "application/json"
        content = calls.written(call.body)
    if call.method != "GET":
        # Makes retries idempotent.
        headers["Idempotency-Key"] = str(uuid4())
    return Send(call.method, base_url + calls.address(call.path, call.query), headers, content)


def _wait(failure: PalaceError, tried: int) -> Wait | None:
    """Seconds to wait; None if waiting does not help or would take too long."""
    if not failure.may_pass:
        return None
    if failure.retry_after_s is not None:
        return Wait(failure.retry_after_s) if failure.retry_after_s <= MOST_WAIT_S else None
    # Jitter, so that many clients do not retry at once.
    spread = random.uniform(0.5, 1.0)  # noqa: S311  # It guards no secret.
    return Wait(min(FIRST_WAIT_S * 2**tried, MOST_WAIT_S) * spread)


def _result(call: Call[R], response: Received) -> R:
    if not isinstance(response, httpx.Response):
        raise _away(response)
    body = _json(response)
    if response.is_success or response.status_code == call.also:
        if response.content and body is None:
            raise BadAnswer(
                "What answers there is no Loci: it sends no JSON. Check the client's base_url.",
                status=response.status_code,
            )
        return call.read(body)
    problem = problem_of(response.status_code, response.headers, body)
    if call.absent is not None and problem.code == "not_found":
        return call.absent()
    raise problem


def _json(answer: httpx.Response) -> object:
    """The body as JSON; None if it is missing or invalid."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        return None


def _away(error: httpx.RequestError | None) -> ServerAway:
    if isinstance(error, httpx.TimeoutException):
        said = "The server did not answer in time. Give the client a larger timeout_s, or ask later"
    elif isinstance(error, httpx.ConnectError):
        said = f"Nobody answers at the address ({error}). Is the server running, and base_url right"
        return ServerAway(f"{said}?", may_pass=True)
    else:
        said = f"The connection broke: {error or type(error).__name__}. Try later"
    return ServerAway(f"{said}.", may_pass=True)

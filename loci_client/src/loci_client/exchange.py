"""The protocol of a call: requests, retries and the result, without I/O.

A generator yields the next step and receives its outcome; the links do the I/O.
"""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TypeVar
from uuid import uuid4

import httpx

from loci_client import values
from loci_client.calls import Call
from loci_client.errors import BadAnswer, PalaceError, ServerAway, problem_of

R = TypeVar("R")

FIRST_WAIT_S = 0.5
MOST_WAIT_S = 30.0
# An earlier attempt is still running, or died, which the server assumes after two minutes. It
# asks to be polled every two seconds; we do so a little longer.
UNDER_WAY = "idempotency_in_progress"
MOST_ASKING = 65


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
IngestionRequest = httpx.Response | httpx.RequestError | None


def exchange(call: Call[R], *, base_url: str, retries: int) -> Generator[Step, IngestionRequest, R]:
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
        content = values.written(call.body)
    if call.method != "GET":
        # Makes retries idempotent.
        headers["Idempotency-Key"] = str(uuid4())
    return Send(call.method, base_url + values.address(call.path, call.query), headers, content)


def _wait(failure: PalaceError, tried: int) -> Wait | None:
    """Seconds to wait; None if waiting does not help or would take too long."""
    if not failure.may_pass:
        return None
    if failure.retry_after_s is not None:
        return Wait(failure.retry_after_s) if failure.retry_after_s <= MOST_WAIT_S else None
    # Jitter, so that many clients do not retry at once.
    spread = random.uniform(0.5, 1.0)  # noqa: S311  # It guards no secret.
    return Wait(min(FIRST_WAIT_S * 2**tried, MOST_WAIT_S) * spread)


def _result(call: Call[R], response: IngestionRequest) -> R:
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

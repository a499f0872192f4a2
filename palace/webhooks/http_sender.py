"""An HTTP client for webhooks, with time limits and address checks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2

from llm.deadline import within
from llm.transport import AddressRefused, GuardedTransport
from palace.errors import BadInput
from palace.webhooks import addresses

CONNECT_S = 5
# Total seconds until the response's headers.
ANSWER_S = 10
# Bytes of a response that are stored for the owner.
KEPT_BYTES = 200
AGENT = "Loci-Webhooks"

# A URL may contain a secret; at INFO these libraries log it.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    Attributes:
        status: The HTTP status; None without a response.
        said: A sentence for people.
    """

    status: int | None
    said: str

    @property
    def arrived(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Whether the endpoint answered 410: no more events (Standard Webhooks)."""
        return self.status == 410


class Line:
    """A client for one webhook URL, used for a batch of deliveries."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx2.Client(
            transport=GuardedTransport(is_allowed=addresses.allowed_for(url)),
            follow_redirects=False,
            trust_env=False,
            timeout=httpx2.Timeout(ANSWER_S, connect=CONNECT_S),
            headers={"User-Agent": AGENT, "Accept-Encoding": "identity"},
        )

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._client.close()

    def send(self, body: bytes, headers: Mapping[str, str]) -> Outcome:
        try:
            addresses.check_url(self._url)
            with within(ANSWER_S):
                return self._post(body, {**headers, "Content-Type": "application/json"})
        except BadInput as error:
            return Outcome(None, str(error).removeprefix("url: "))
        except AddressRefused:
            return Outcome(None, self._refused())
        except httpx2.TimeoutException:
            return Outcome(None, f"It did not answer within {ANSWER_S} seconds.")
        except (httpx2.RequestError, httpx2.InvalidURL, OSError) as error:
            return Outcome(None, f"It cannot be reached: {_in_short(str(error))}")

    def _post(self, body: bytes, headers: Mapping[str, str]) -> Outcome:
        with self._client.stream("POST", self._url, content=body, headers=headers) as response:
            status = response.status_code
            if 200 <= status < 300:
                return Outcome(status, f"It answered {status}.")
            if 300 <= status < 400:
                said = "a redirect, which is not followed. Name the address it leads to."
                return Outcome(status, f"It answered {status}, {said}")
            excerpt = _in_short(_beginning(response))
            return Outcome(
                status, f"It answered {status}: {excerpt}" if excerpt else f"It answered {status}."
            )

    def _refused(self) -> str:
        parts = urlsplit(self._url)
        if parts.scheme == "http":
            return addresses.NOT_PLAIN
        return addresses.not_allowed(parts.hostname or "")


def _beginning(response: httpx2.Response) -> str:
    """The start of the body; errors while reading it do not matter."""
    received = b""
    try:
        for part in response.iter_raw():
            received += part
            if len(received) >= KEPT_BYTES:
                break
    except httpx2.RequestError:
        pass
    return received[:KEPT_BYTES].decode(errors="replace")


def _in_short(text: str) -> str:
    """The text on one line, printable characters only."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())

"""The `openai` library's client for an endpoint, with its errors translated to ours.

`llm` imports that library at the first call: it takes half a second and 30 MB, and an installation
without a model never needs it.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import httpx2
from django.conf import settings

from llm import deadline, request_admission, sent
from llm.errors import LLMError, ModelRefused, ModelUnavailable
from llm.providers import Endpoint
from llm.transport import AddressRefused, GuardedTransport, tls

if TYPE_CHECKING:
    import openai

CONNECT_TIMEOUT_S = 10

# At DEBUG these log whole requests, with everything a user said.
for _name in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)

# A provider's error code is a word; anything longer might quote the key or the conversation.
_CODE = re.compile(r"[A-Za-z][\w.-]{1,60}")


def connect(endpoint: Endpoint, *, max_retries: int | None = None) -> openai.OpenAI:
    """A client that retries 408, 409, 429, 5xx and broken connections with backoff.

    It honours Retry-After, and deadlines (`llm.deadline.within`) in each try. Clients and their
    connections are cached per process: a forked child must not share its parent's.

    Args:
        max_retries: By default LOCI_LLM_MAX_RETRIES.
    """
    return _client(
        os.getpid(),
        endpoint.base_url,
        endpoint.api_key,
        settings.LLM_MAX_RETRIES if max_retries is None else max_retries,
        endpoint.of_a_user,
        endpoint.of_a_user and not settings.PRIVATE_PROVIDERS,
    )


@lru_cache(maxsize=16)
def _client(
    _process_id: int,
    base_url: str,
    api_key: str,
    max_retries: int,
    of_a_user: bool,  # noqa: FBT001 - the cache keeps no keywords apart.
    guarded: bool,  # noqa: FBT001
) -> openai.OpenAI:
    import openai  # noqa: PLC0415 - see llm.client.

    client = openai.OpenAI(
        base_url=base_url,
        # The library requires a key, even if a self-hosted server needs none.
        api_key=api_key or "none",
        max_retries=max_retries,
        http_client=guarded_client() if guarded else openai.DefaultHttpxClient(verify=tls()),
    )
    # Connections close when the client is collected. Its own finalizers may run after theirs.
    weakref.finalize(client, client._client.close).atexit = False
    client._client.event_hooks["request"] += [_limit_to_deadline, sent.follow]
    client._client.event_hooks["response"] += [_retry_before_deadline, deadline.enforce_on_body]
    # Read from the environment; other providers must not get them.
    client.organization = client.project = None
    if of_a_user:
        # Likewise OPENAI_CUSTOM_HEADERS, which may be meant for the operator's providers.
        client._custom_headers = {}
    return client


def _limit_to_deadline(request: httpx2.Request) -> None:
    """Event hook: each try, retries included, waits at most for the time that is left.

    Raises:
        openai.APITimeoutError: The deadline has passed. The library does not retry after it.
    """
    import openai  # noqa: PLC0415 - see llm.client.

    limit = deadline.current()
    if limit is None:
        return
    left_s = limit.left_s
    if left_s <= 0:
        raise openai.APITimeoutError(request=request)
    timeouts = request.extensions["timeout"]
    request.extensions["timeout"] = {
        name: left_s if seconds is None else min(seconds, left_s)
        for name, seconds in timeouts.items()
    }


def _retry_before_deadline(response: httpx2.Response) -> None:
    """Event hook: the library does not retry where the server asks it to wait for too long."""
    limit = deadline.current()
    if limit is not None and not _asked_pause_s(response.headers) < limit.left_s:
        response.headers["x-should-retry"] = "false"


def _asked_pause_s(headers: httpx2.Headers) -> float:
    """What is neither a number nor a date counts as too long."""
    after = headers.get("retry-after", "0")
    with suppress(ValueError):
        if "retry-after-ms" in headers:
            return float(headers["retry-after-ms"]) / 1000
        return float(after)
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(after).timestamp() - time.time()
    return math.inf


def guarded_client() -> httpx2.Client:
    """A client on the guarded transport. It does not follow redirects to unchecked addresses."""
    import openai  # noqa: PLC0415 - see llm.client.

    return openai.DefaultHttpxClient(
        transport=GuardedTransport(),
        follow_redirects=False,
        trust_env=False,
        headers={"Accept-Encoding": "identity"},
    )


def timeout(timeout_s: float | None) -> httpx2.Timeout:
    """At most ten seconds to connect, and the given time for each silence of the server."""
    seconds = settings.LLM_TIMEOUT_S if timeout_s is None else timeout_s
    return httpx2.Timeout(seconds, connect=min(CONNECT_TIMEOUT_S, seconds))


@contextmanager
def translated(
    endpoint: Endpoint,
    *,
    unavailable: type[LLMError] = ModelUnavailable,
    refused: type[LLMError] = ModelRefused,
    timeout_s: float | None = None,
) -> Iterator[None]:
    """Around a call: translate the library's errors to ours, and let others work meanwhile.

    The originals are not chained: they may quote the key or the conversation, which must not be
    logged.

    Args:
        timeout_s: The call's timeout; None for the setting, which the message then names.
    """
    import openai  # noqa: PLC0415 - see llm.client.

    try:
        with request_admission.waiting():
            yield
    except AddressRefused as error:
        raise refused(str(error)) from None
    except httpx2.InvalidURL:
        raise refused(f"{endpoint}: {endpoint.address} is not a valid URL.") from None
    except openai.APIStatusError as error:
        kind = unavailable if _is_temporary(error.status_code) else refused
        raise kind(_status_sentence(error, endpoint)) from None
    except openai.APITimeoutError:
        raise unavailable(_late_sentence(endpoint, timeout_s)) from None
    except openai.APIConnectionError:
        raise unavailable(
            f"{endpoint} could not be reached; check that it runs and "
            f"that {endpoint.address} is its address."
        ) from None
    except openai.APIError as error:
        raise unavailable(f"{endpoint} stopped with an error{_code(error)}.") from None
    except (ValueError, openai.OpenAIError):
        raise unavailable(not_the_protocol(endpoint)) from None


def not_the_protocol(endpoint: Endpoint) -> str:
    return (
        f"{endpoint} sent a response that is not in OpenAI's protocol; check that "
        f"{endpoint.address} is the base URL of a compatible API."
    )


def _late_sentence(endpoint: Endpoint, timeout_s: float | None) -> str:
    if (limit := deadline.current()) is not None:
        timeout_s = limit.seconds
    if timeout_s is not None:
        return f"{endpoint} did not answer within {timeout_s:g} s."
    return f"{endpoint} did not answer in time; try again, or raise LOCI_LLM_TIMEOUT_S."


def _is_temporary(status: int) -> bool:
    return status in {408, 409, 425, 429} or status >= 500


def _status_sentence(error: openai.APIStatusError, endpoint: Endpoint) -> str:
    who, status = str(endpoint), error.status_code
    sentences = {
        **dict.fromkeys((301, 302, 303, 307, 308), _redirected(who)),
        401: f"{who} refused the API key; check the key.",
        402: f"{who} requires payment; check the account's credit.",
        403: f"{who} does not allow this API key to use the model; check the key's rights.",
        404: f"{who} was not found; check the model's name and the provider's address.",
        413: f"{who} refused the request as too large.",
        429: f"{who} is busy or the account is over its limit{_code(error)}; try again later.",
    }
    failed = f"{who} failed with status {status}{_code(error)}; try again later."
    turned_down = f"{who} refused the request with status {status}{_code(error)}."
    return sentences.get(status) or (failed if _is_temporary(status) else turned_down)


def _redirected(who: str) -> str:
    return f"{who} redirects to another address; configure that address instead."


def _code(error: openai.APIError) -> str:
    # The library does not check that it is a text.
    word = str(error.code or error.type or "")
    return f" ({word})" if _CODE.fullmatch(word) else ""

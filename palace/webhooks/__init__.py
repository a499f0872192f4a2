"""Webhooks notify the owner's programs of events in the palaces: add, change, test, and send.

A webhook may have a public URL by HTTPS, or a private one if allowed. As for users' own models
(`llm.transport`), private networks are closed unless LOCI_PRIVATE_PROVIDERS opens them. A form
checks what it can without resolving; each delivery resolves the name and checks its addresses.

Signatures are those of Standard Webhooks (version 1, symmetric): HMAC-SHA256 of `id.seconds.body`
under the secret's bytes; the secret is written as `whsec_` and these bytes in base64.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit
from uuid import UUID, uuid4

import httpx2
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from language.errors import BadInput
from language.storable import is_storable, storable_id
from llm import transport
from llm.deadline import within
from llm.errors import ModelRefused
from llm.transport import AddressRefused, GuardedTransport
from palace.models import Webhook, WebhookDelivery
from settings_app.secrets import seal

MOST = 20
# How long a receiver may still use the former secret.
FORMER_SIGNS_FOR = timedelta(days=1)
MOST_URL_CHARS = 1000
NOT_PLAIN = "Webhook URLs must use https://; http:// is for your own network."
STARTS_WITH = "whsec_"
SECRET_BYTES = 32
CONNECT_S = 5
# Total seconds until the response's headers.
ANSWER_S = 10
# Bytes of a response that are stored for the owner.
KEPT_BYTES = 200
AGENT = "Loci-Webhooks"

# A URL may contain a secret; at INFO these libraries log it.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@transaction.atomic
def add(
    owner_id: int,
    url: str,
    events: Collection[str],
    subject: str | None = None,
    *,
    webhook_id: UUID | None = None,
) -> tuple[Webhook, str]:
    """Create a webhook; returns it with its signing secret, which is shown only once.

    Args:
        webhook_id: Its id, if the caller has made one; default: a new one.

    Raises:
        BadInput: the URL is invalid, no event is given, or there are too many webhooks.
    """
    check_url(url)
    # Lock, so that concurrent calls cannot exceed the limit.
    get_user_model().objects.select_for_update(no_key=True).get(pk=owner_id)
    if Webhook.objects.filter(owner=owner_id).count() >= MOST:
        raise BadInput(f"There are {MOST} webhooks already. Delete one that you need no more.")
    secret = new_secret()
    webhook = Webhook.objects.create(
        uuid=webhook_id or uuid4(),
        owner_id=owner_id,
        url=url,
        events=_in_order(events),
        subject=subject if subject is None else storable_id(subject),
        sealed_secret=seal(secret),
    )
    return webhook, secret


def change(webhook: Webhook, *, url: str | None = None, events: Collection[str] = ()) -> None:
    """
    Raises:
        BadInput: as `add`.
    """
    if url is not None:
        check_url(url)
        webhook.url = url
    if events:
        webhook.events = _in_order(events)
    webhook.save(update_fields=["url", "events"])


@transaction.atomic
def replace_secret(webhook: Webhook) -> str:
    """A new signing secret, which is returned only here; the one before signs for a day more."""
    stored = Webhook.objects.select_for_update().get(pk=webhook.pk)
    secret = new_secret()
    _update(
        webhook,
        sealed_secret=seal(secret),
        former_sealed_secret=stored.sealed_secret,
        former_until=timezone.now() + FORMER_SIGNS_FOR,
    )
    return secret


def enable(webhook: Webhook) -> None:
    """Enable it; pending deliveries go first."""
    _update(webhook, disabled_at=None, disabled_why="", failing_since=None)


def disable(webhook: Webhook) -> None:
    """Disable it; deliveries wait until it is enabled."""
    if webhook.disabled_at is None:
        _update(webhook, disabled_at=timezone.now(), disabled_why="You stopped it.")


def try_out(webhook: Webhook) -> WebhookDelivery:
    """Queue a test event, delivered like all others.

    Raises:
        BadInput: the webhook is disabled.
    """
    if webhook.disabled_at is not None:
        raise BadInput("This webhook is disabled. Enable it first.")
    said = "This is a test. Nothing happened in your palace."
    return WebhookDelivery.objects.create(
        webhook=webhook, event=WebhookDelivery.TEST, data={"message": said}
    )


def _in_order(events: Collection[str]) -> list[str]:
    chosen = [event for event in Webhook.Event.values if event in events]
    if not chosen:
        raise BadInput(f"events: name at least one of {', '.join(Webhook.Event.values)}.")
    return chosen


def _update(webhook: Webhook, **values: object) -> None:
    for name, value in values.items():
        setattr(webhook, name, value)
    webhook.save(update_fields=list(values))


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


class WebhookClient:
    """A client for one webhook URL, used for a batch of deliveries."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx2.Client(
            transport=GuardedTransport(is_allowed=allowed_for(url)),
            follow_redirects=False,
            trust_env=False,
            timeout=httpx2.Timeout(ANSWER_S, connect=CONNECT_S),
            headers={"User-Agent": AGENT, "Accept-Encoding": "identity"},
        )

    def __enter__(self) -> WebhookClient:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._client.close()

    def send(self, body: bytes, headers: Mapping[str, str]) -> Outcome:
        try:
            check_url(self._url)
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
            return NOT_PLAIN
        return not_allowed(parts.hostname or "")


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


def new_secret() -> str:
    """A random secret, as Standard Webhooks writes it."""
    return STARTS_WITH + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed_headers(
    keys: Sequence[str], message_id: str, seconds: int, body: bytes
) -> dict[str, str]:
    """
    Args:
        keys: Secrets; one signature by each, as Standard Webhooks has it while they change.
        message_id: The same for each attempt; receivers deduplicate by it.
        seconds: Unix time of sending; receivers refuse old ones.
    """
    signed = f"{message_id}.{seconds}.".encode() + body
    signatures = [f"v1,{_signature(key, signed)}" for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signatures),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(STARTS_WITH))
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def check_url(url: str) -> None:
    """
    Raises:
        BadInput: the URL is invalid or not allowed, as far as can be seen without resolving it.
    """
    parts = _read(url)
    if parts.scheme == "http" and not settings.PRIVATE_PROVIDERS:
        raise BadInput("url: Webhook URLs must use https://; write an address that begins with it.")
    if parts.scheme == "http" and _is_public_number(parts.hostname or ""):
        raise BadInput(f"url: {NOT_PLAIN}")
    try:
        transport.check_address(url)
    except ModelRefused:
        raise BadInput(f"url: {not_allowed(parts.hostname or '')}") from None


def allowed_for(url: str) -> Callable[[str], bool]:
    """A check of IP addresses: unencrypted http is only for private networks."""
    if urlsplit(url).scheme == "http":
        return lambda address: not transport.is_public(address)
    return (lambda _address: True) if settings.PRIVATE_PROVIDERS else transport.is_public


def not_allowed(host: str) -> str:
    return (
        f"{host} is within this server's own network, where a webhook may not be. Use a public "
        "address, or ask the operator of this server to allow it (LOCI_PRIVATE_PROVIDERS)."
    )


def _read(url: str) -> SplitResult:
    if not is_storable(url) or len(url) > MOST_URL_CHARS or not url.isprintable() or " " in url:
        raise BadInput(
            f"url: write an address of up to {MOST_URL_CHARS} characters, without blanks."
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadInput("url: this is not a URL; write one like https://example.org/hook.") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise BadInput("url: this is not a URL; write one like https://example.org/hook.")
    if parts.username is not None or parts.password is not None:
        raise BadInput("url: leave the name and password out; check the signature instead.")
    if parts.fragment:
        raise BadInput("url: leave out the # and what follows; no server is sent that.")
    return parts


def _is_public_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return transport.is_public(host)

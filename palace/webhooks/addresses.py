"""Which URLs a webhook may have: public ones by HTTPS, or private ones if allowed.

As for users' own models (`llm.guard`), private networks are closed unless LOCI_PRIVATE_PROVIDERS
opens them. A form checks what it can without resolving; each delivery resolves the name and checks
its addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from language.storable import is_storable
from llm import guard
from llm.errors import ModelRefused
from palace.errors import BadInput

MOST_CHARS = 1000


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
        guard.check_address(url)
    except ModelRefused:
        raise BadInput(f"url: {not_allowed(parts.hostname or '')}") from None


def allowed_for(url: str) -> Callable[[str], bool]:
    """A check of IP addresses: unencrypted http is only for private networks."""
    if urlsplit(url).scheme == "http":
        return lambda address: not guard.is_public(address)
    return (lambda _address: True) if settings.PRIVATE_PROVIDERS else guard.is_public


NOT_PLAIN = "Webhook URLs must use https://; http:// is for your own network."


def not_allowed(host: str) -> str:
    return (
        f"{host} is within this server's own network, where a webhook may not be. Use a public "
        "address, or ask whoever runs Loci to allow it (LOCI_PRIVATE_PROVIDERS)."
    )


def _read(url: str) -> SplitResult:
    if not is_storable(url) or len(url) > MOST_CHARS or not url.isprintable() or " " in url:
        raise BadInput(f"url: write an address of up to {MOST_CHARS} characters, without blanks.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadInput("url: this is not a URL; write one like https://example.org/told.") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise BadInput("url: this is not a URL; write one like https://example.org/told.")
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
    return guard.is_public(host)

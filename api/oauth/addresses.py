"""Addresses of the authorization server and its resource, and checks of redirect addresses."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from pydantic import AnyUrl, TypeAdapter, ValidationError

# Schemes of well-known native apps. Others need a reversed domain name, such as com.example.app
# (RFC 8252, 8.4): no dangerous scheme (javascript, file) has that form.
APP_SCHEMES = {
    *("cursor", "kiro", "vscode", "vscode-insiders", "vscodium", "windsurf"),
}
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
RESOURCE_PATH = "/mcp"
PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"
AUTHORIZE, TOKEN = "/oauth/authorize", "/oauth/token"
REGISTER, REVOKE = "/oauth/register", "/oauth/revoke"

_URL = TypeAdapter(AnyUrl)


@dataclass(frozen=True, slots=True)
class Addresses:
    """
    Attributes:
        issuer: The origin, without a slash at its end.
    """

    issuer: str

    @property
    def resource(self) -> str:
        return self.issuer + RESOURCE_PATH

    @property
    def resource_metadata(self) -> str:
        return self.issuer + PROTECTED_RESOURCE + RESOURCE_PATH

    def is_resource(self, asked: str | None) -> bool:
        """Whether a request's `resource` is this one, or missing."""
        return asked is None or normalized(asked).removesuffix("/") == normalized(self.resource)


def addresses_of(request: HttpRequest) -> Addresses | None:
    """From LOCI_PUBLIC_URL, or else from a request to loopback. None: OAuth is off.

    Another host in a request does not name the issuer: a proxy may pass on any.
    """
    if settings.PUBLIC_URL:
        return Addresses(settings.PUBLIC_URL)
    origin = f"{request.scheme}://{request.get_host()}"
    return Addresses(origin) if host_of(origin) in LOOPBACK else None


def normalized(url: str) -> str:
    """The URL in the spelling of browsers; empty if it is not absolute."""
    try:
        return str(_URL.validate_python(url))
    except ValidationError:
        return ""


def host_of(url: str) -> str:
    """The host; an IPv6 address in brackets, as in URLs."""
    host = urlsplit(url).hostname or ""
    return f"[{host}]" if ":" in host else host


def app_scheme(url: str) -> str:
    """The scheme of an address that only a native app opens (RFC 8252, 7.1); else empty."""
    parts = urlsplit(url)
    has_place = bool(parts.netloc) or parts.path.startswith("/")
    is_known = parts.scheme in APP_SCHEMES or "." in parts.scheme.strip(".")
    return parts.scheme if has_place and is_known else ""


def is_same_redirect(registered: str, asked: str) -> bool:
    """Whether they are equal, except for the port of a loopback address, which the app chooses
    when it starts (RFC 8252, 7.3)."""
    if registered == asked:
        return True
    one, other = urlsplit(registered), urlsplit(asked)
    is_loopback = one.scheme == "http" and host_of(registered) in LOOPBACK
    return (
        is_loopback
        and host_of(registered) == host_of(asked)
        and one._replace(netloc="") == other._replace(netloc="")
    )

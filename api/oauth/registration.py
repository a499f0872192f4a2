"""Apps that register themselves as public clients (RFC 7591): their redirect addresses, and the
server's own addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import DEFAULT_GRANT_TYPES, OAuthClientInformationFull
from pydantic import AnyUrl, TypeAdapter, ValidationError

from api.models import RegisteredApp

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


# The scopes of apps. Administration needs a key, which a user makes by hand.
SCOPES = ("read", "write")
MOST_REDIRECTS = 20
MOST_REDIRECT_CHARS = 500
_NAME_CHARS = 100
# Fields that are stored, or equal for all apps; the answer has no others.
_KEPT = {"client_id", "client_id_issued_at", "application_type", "redirect_uris", "response_types"}


def register_app(information: OAuthClientInformationFull, redirects: Sequence[str]) -> None:
    """Store the app, and update `information` to the registered values.

    Args:
        redirects: As `checked_redirects` gives them.
    """
    granted = [kind for kind in DEFAULT_GRANT_TYPES if kind in information.grant_types]
    app = RegisteredApp.objects.create(
        client_id=UUID(information.client_id),
        name=_shown(information.client_name or "") or _place_of(redirects[0]),
        redirect_uris=list(redirects),
        grant_types=granted,
    )
    scopes = known_scopes(information.scope)
    for name, field in OAuthClientInformationFull.model_fields.items():
        if name not in _KEPT:
            setattr(information, name, field.get_default(call_default_factory=True))
    information.client_name, information.grant_types = app.name, granted
    information.scope = " ".join(scopes)
    # RFC 7591 lets a server replace requested values. Public clients have no secret.
    information.token_endpoint_auth_method = "none"  # noqa: S105 - a method.


def app_of(client_id: str) -> RegisteredApp | None:
    try:
        known = UUID(client_id)
    except ValueError:
        return None
    app = RegisteredApp.objects.filter(client_id=known).first()
    # Normalised, because redirect addresses are compared as text later.
    return app if app is not None and str(app.client_id) == client_id else None


def information_of(app: RegisteredApp) -> OAuthClientInformationFull:
    return OAuthClientInformationFull.model_validate(
        {
            "client_id": str(app.client_id),
            "client_name": app.name,
            "redirect_uris": app.redirect_uris,
            "grant_types": app.grant_types,
            "token_endpoint_auth_method": "none",
            "scope": " ".join(SCOPES),
        }
    )


def redirect_of(app: RegisteredApp, asked: str | None) -> str | None:
    """The address to send the browser back to; None if it is not registered."""
    if asked is None:
        return app.redirect_uris[0] if len(app.redirect_uris) == 1 else None
    address = normalized(asked)
    found = any(is_same_redirect(each, address) for each in app.redirect_uris)
    return address if found and len(address) <= MOST_REDIRECT_CHARS else None


def known_scopes(asked: str | None) -> list[str]:
    """The requested scopes that exist, in our order; all if none were requested."""
    words = (asked or "").split()
    return [scope for scope in SCOPES if scope in words] if words else list(SCOPES)


def checked_redirects(information: OAuthClientInformationFull) -> list[str]:
    """
    Raises:
        RegistrationError: A redirect address is neither https, nor on the user's own machine, nor
            a native app's own. It cannot pass through a context manager: the SDK's error is frozen.
    """
    addresses = [normalized(str(uri)) for uri in information.redirect_uris or ()]
    if not 1 <= len(addresses) <= MOST_REDIRECTS:
        said = f"Register between 1 and {MOST_REDIRECTS} redirect addresses."
        raise RegistrationError("invalid_redirect_uri", said)
    for address in addresses:
        parts = urlsplit(address)
        is_private = parts.scheme == "http" and host_of(address) in LOOPBACK
        if parts.scheme != "https" and not is_private and not app_scheme(address):
            said = (
                "A redirect address must be https, http on localhost, 127.0.0.1 or [::1], or have "
                "an app's own scheme: a reversed domain name, such as com.example.app:/callback."
            )
            raise RegistrationError("invalid_redirect_uri", said)
        if "@" in parts.netloc or "#" in address or len(address) > MOST_REDIRECT_CHARS:
            said = (
                "A redirect address must have no user name, no fragment, and at most "
                f"{MOST_REDIRECT_CHARS} characters."
            )
            raise RegistrationError("invalid_redirect_uri", said)
    return addresses


def _place_of(address: str) -> str:
    return host_of(address) or urlsplit(address).scheme


def _shown(name: str) -> str:
    """The name without characters that could hide or reverse surrounding text."""
    visible = "".join(sign if sign.isprintable() else " " for sign in name)
    return " ".join(visible.split())[:_NAME_CHARS]

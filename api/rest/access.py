"""Access by an API key in `Authorization: Bearer`: scopes, rate, and the palaces it opens."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from api.rest.problems import Problem
from isolation import row_access
from language.storable import replace_unstorable, storable_id
from llm.request_admission import note_caller
from palace.models import Palace, PalaceQuerySet
from settings_app.api_keys import ApiKey, add_audit_line, key_of
from settings_app.throttling import Rate

CHALLENGE = 'Bearer realm="Loci"'
NO_KEY = (
    "Send a key in the header “Authorization: Bearer loci_…”. Make one on the page /settings/keys/."
)
BAD_KEY = "This key is not known, has expired or was revoked. Make one on the page /settings/keys/."


def key_in(header: str, schemes: Collection[str] = ("bearer",)) -> ApiKey:
    """The API key of an Authorization header.

    Raises:
        Problem: 401; the sentence says what to send.
    """
    key = key_of(bearer_in(header, schemes))
    if key is None:
        raise _refused("bad_key", BAD_KEY)
    note_caller(header)
    return key


def bearer_in(header: str, schemes: Collection[str] = ("bearer",)) -> str:
    """The key or token of an Authorization header.

    Raises:
        Problem: 401; the sentence says what to send.
    """
    kind, _, text = header.strip().partition(" ")
    if kind.lower() not in schemes or not text.strip():
        raise _refused("not_authenticated", NO_KEY)
    return text.strip()


def _refused(code: str, sentence: str) -> Problem:
    return Problem(401, code, sentence, headers={"WWW-Authenticate": CHALLENGE})


def note_write(key: ApiKey, request: HttpRequest | Request, status: int, *, door: str) -> None:
    """Add a line to the audit log; see `settings_app.api_keys.add_audit_line`."""
    add_audit_line(
        key,
        door=door,
        action=str(request.method),
        path=replace_unstorable(request.path),
        status=status,
    )


def check_scope(key: ApiKey, scope: str, advice: str = "") -> None:
    """
    Args:
        advice: A further sentence for the error.

    Raises:
        Problem: 403, the key lacks the scope.
    """
    if not key.may(scope):
        sentence = f"This key may not {scope}; make one with the scope “{scope}”."
        raise Problem(403, "missing_scope", f"{sentence} {advice}".strip())


def check_rate(rate: Rate | None) -> None:
    """
    Raises:
        Problem: 429, the key's rate limit is exceeded.
    """
    if rate is not None and not rate.allowed:
        sentence = (
            f"A key may send {rate.limit} requests in {rate.window_s} seconds, and this one has; "
            f"one that asks for much counts as several. Ask again in {rate.reset_s} seconds."
        )
        raise Problem(429, "too_many_requests", sentence, headers=rate.headers())


class BearerKey(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiKey]:
        key = key_in(request.headers.get("Authorization", ""))
        row_access.enter(key.row_access())
        return key.owner, key

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


class BearerKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes the authentication in the OpenAPI schema."""

    target_class = "api.rest.access.BearerKey"
    name = "key"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A key from the page /settings/keys/, with its scopes.",
        }


def subject_for(key: ApiKey, user_id: str | None) -> str:
    """The name its owner gives the palace; empty is the owner's own.

    Args:
        user_id: As the request has it; without one it is the key's own palace.

    Raises:
        Problem: 400, it is blank; 403, the key is for another palace, whether or not there is
            such a one.
    """
    if user_id is None:
        return key.subject or ""
    if not user_id.strip():
        raise Problem(400, "bad_input", "user_id is blank; leave it out for your own palace.")
    subject = storable_id(user_id)
    if not key.opens(subject):
        said = "This key opens one palace only, and not that one. Leave user_id out."
        raise Problem(403, "wrong_palace", said)
    return subject


def palace_of(key: ApiKey, user_id: str | None) -> Palace | None:
    """The existing palace, or None if that person has none yet."""
    return Palace.objects.named(key.owner_id, subject_for(key, user_id))


def palace_made(key: ApiKey, user_id: str | None) -> Palace:
    subject = subject_for(key, user_id)
    palace, _ = Palace.objects.get_or_create(owner_id=key.owner_id, subject=subject)
    return palace


def palaces_for(key: ApiKey) -> PalaceQuerySet:
    """All palaces of the key."""
    palaces = Palace.objects.filter(owner=key.owner_id).order_by("pk")
    return palaces if key.subject is None else palaces.filter(subject=key.subject)


def palaces_of(key: ApiKey) -> list[Palace]:
    """`palaces_for`, as a list."""
    return list(palaces_for(key))

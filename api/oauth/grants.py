"""Codes, tokens and connections. Only digests of secrets are stored.

Each function opens the row access that it needs: a secret opens its own row, which names the
account of the others.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from api.models import LISTED_FOR, AuthorizationCode, ConnectedApp, RegisteredApp, Token
from isolation import row_access
from palace.models.concurrency import sweep_task
from settings_app.api_keys import ApiKey, digest_of, issue, note_use

CODE_LASTS = timedelta(minutes=2)
ACCESS_LASTS = timedelta(hours=1)
# Since the last refresh.
REFRESH_LASTS = timedelta(days=30)
# After this time, apps that nobody connected are deleted, and codes with the record of their use.
UNUSED_LASTS = timedelta(days=1)
ACCESS_PREFIX = "loci-access-"
_REFRESH_PREFIX = "loci-refresh-"
_CODE_PREFIX = "loci-code-"


@dataclass(frozen=True, slots=True)
class Consent:
    """What a user allowed an app.

    Attributes:
        subject: As `ApiKey.subject`.
        redirect_uri_given: Whether the request named it; the exchange must do likewise.
    """

    owner: User
    app: RegisteredApp
    scopes: Sequence[str]
    subject: str | None
    resource: str
    code_challenge: str
    redirect_uri: str
    redirect_uri_given: bool


@dataclass(frozen=True, slots=True)
class Issued:
    """
    Attributes:
        refresh: None where the app did not ask for refresh tokens.
    """

    access: str
    refresh: str | None
    scopes: list[str]


def issue_code(consent: Consent) -> str:
    """Call it with the owner's rows open."""
    text = _CODE_PREFIX + secrets.token_urlsafe(32)
    AuthorizationCode.objects.create(
        owner=consent.owner,
        app=consent.app,
        digest=digest_of(text),
        scopes=list(consent.scopes),
        subject=consent.subject,
        resource=consent.resource,
        code_challenge=consent.code_challenge,
        redirect_uri=consent.redirect_uri,
        redirect_uri_given=consent.redirect_uri_given,
        expires_at=timezone.now() + CODE_LASTS,
    )
    return text


def find_code(text: str, client_id: str, resource: str) -> AuthorizationCode | None:
    """The app's code. If it was used before, the connection it made ends."""
    digest = digest_of(text)
    with row_access.with_secret(digest):
        codes = AuthorizationCode.objects.filter(app__client_id=client_id, resource=resource)
        code = codes.filter(digest=digest).first()
    if code is not None and code.connection_id is not None:
        _end(code.owner_id, code.connection_id)
        return None
    return code


def exchange_code(text: str, client_id: str, resource: str) -> Issued | None:
    """Connect the app; None if the code is invalid, or another exchange came first."""
    code = find_code(text, client_id, resource)
    if code is None:
        return None
    with row_access.open_account(code.owner_id):
        with transaction.atomic():
            locked = AuthorizationCode.objects.select_for_update().filter(pk=code.pk).first()
            if locked is None or not locked.owner.is_active or locked.expires_at < timezone.now():
                return None
            if locked.connection_id is None:
                return _connect(locked)
        _end(locked.owner_id, locked.connection_id)
    return None


def _connect(code: AuthorizationCode) -> Issued:
    # The key's text is discarded.
    key, _ = issue(code.owner, code.app.name, scopes=code.scopes, subject=code.subject)
    code.connection = ConnectedApp.objects.create(
        owner=code.owner,
        app=code.app,
        key=key,
        resource=code.resource,
        redirect_uri=code.redirect_uri,
    )
    code.save(update_fields=["connection"])
    return _issue_tokens(code.connection, code.scopes, code.scopes)


def find_refresh_token(text: str, client_id: str, resource: str) -> Token | None:
    """The app's refresh token. If it was used before, the connection ends."""
    token = _token_of(text, Token.Kind.REFRESH)
    if token is None or str(token.connection.app.client_id) != client_id:
        return None
    if token.used_at is not None:
        _end(token.owner_id, token.connection_id)
        return None
    return token if _usable_key(token, resource) is not None else None


def refresh(text: str, client_id: str, resource: str, scopes: Sequence[str]) -> Issued | None:
    """Replace the refresh token; None if it is invalid, or another refresh came first."""
    token = find_refresh_token(text, client_id, resource)
    if token is None:
        return None
    with row_access.open_account(token.owner_id):
        with transaction.atomic():
            locked = Token.objects.select_for_update().filter(pk=token.pk).first()
            if locked is None:
                return None
            if locked.used_at is None:
                locked.used_at = timezone.now()
                locked.save(update_fields=["used_at"])
                return _issue_tokens(locked.connection, scopes, locked.scopes)
        _end(locked.owner_id, locked.connection_id)
    return None


def key_of_access_token(text: str, resource: str) -> ApiKey | None:
    """The connection's key, with at most the token's scopes; records its use."""
    token = _token_of(text, Token.Kind.ACCESS)
    key = _usable_key(token, resource) if token is not None else None
    if token is None or key is None:
        return None
    with row_access.open_account(token.owner_id):
        note_use(key)
    key.scopes = [scope for scope in key.scopes if scope in token.scopes]
    return key


def revoke(text: str, client_id: str) -> None:
    """End the connection of an access or refresh token (RFC 7009), if it is this app's."""
    for kind in Token.Kind:
        token = _token_of(text, kind)
        if token is not None and str(token.connection.app.client_id) == client_id:
            _end(token.owner_id, token.connection_id)


@sweep_task("api.tasks.forget_unused", "connected apps")
def forget_unused() -> None:
    """Delete expired codes and tokens, and unused apps.

    Safe to run twice: what is left can still open something, or is still listed.
    """
    now = timezone.now()
    AuthorizationCode.objects.filter(expires_at__lt=now - UNUSED_LASTS).delete()
    Token.objects.filter(expires_at__lt=now).delete()
    ApiKey.objects.filter(connected_app__isnull=False, expires_at__lt=now - LISTED_FOR).delete()
    unused = RegisteredApp.objects.filter(connections=None, codes=None)
    unused.filter(registered_at__lt=now - UNUSED_LASTS).delete()


def _token_of(text: str, kind: str) -> Token | None:
    digest = digest_of(text)
    with row_access.with_secret(digest):
        found = Token.objects.filter(digest=digest, kind=kind, expires_at__gt=timezone.now())
        token = found.first()
    if token is None:
        return None
    with row_access.open_account(token.owner_id):
        connections = ConnectedApp.objects.select_related("app")
        connection = connections.filter(pk=token.connection_id).first()
    if connection is None:
        return None
    token.connection = connection
    return token


def _usable_key(token: Token, resource: str) -> ApiKey | None:
    with row_access.open_account(token.owner_id):
        connected = {"connected_app": token.connection_id, "connected_app__resource": resource}
        key = ApiKey.objects.select_related("owner").filter(**connected).first()
    return key if key is not None and key.is_usable else None


def _issue_tokens(
    connection: ConnectedApp, scopes: Sequence[str], refreshed: Sequence[str]
) -> Issued:
    """
    Args:
        scopes: Of the access token.
        refreshed: Of the refresh token, which keeps all that was allowed.
    """
    now, refreshes = timezone.now(), connection.app.refreshes
    access = _new_token(connection, Token.Kind.ACCESS, ACCESS_PREFIX, scopes)
    new = None
    if refreshes:
        new = _new_token(connection, Token.Kind.REFRESH, _REFRESH_PREFIX, refreshed)
    lasts = REFRESH_LASTS if refreshes else ACCESS_LASTS
    ApiKey.objects.filter(pk=connection.key_id).update(expires_at=now + lasts)
    return Issued(access, new, list(scopes))


def _new_token(
    connection: ConnectedApp, kind: Token.Kind, prefix: str, scopes: Sequence[str]
) -> str:
    text = prefix + secrets.token_urlsafe(32)
    lasts = REFRESH_LASTS if kind == Token.Kind.REFRESH else ACCESS_LASTS
    Token.objects.create(
        owner_id=connection.owner_id,
        connection=connection,
        kind=kind,
        digest=digest_of(text),
        scopes=list(scopes),
        expires_at=timezone.now() + lasts,
    )
    return text


def _end(owner_id: int, connection_id: int) -> None:
    with row_access.open_account(owner_id):
        for connection in ConnectedApp.objects.select_related("key").filter(pk=connection_id):
            connection.end()

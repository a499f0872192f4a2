"""Apps that connect by OAuth: as they registered themselves, what a user allowed, their tokens."""

from __future__ import annotations

import uuid
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from settings_app.api_keys import ApiKey

# How long an ended connection stays in the list.
LISTED_FOR = timedelta(days=90)
_NAME_CHARS = 100
_ADDRESS_CHARS = 500
_DIGEST_CHARS = 64


def _scopes() -> ArrayField[list[str], list[str]]:
    return ArrayField(models.CharField(max_length=5, choices=ApiKey.Scope))


class RegisteredApp(models.Model):
    """An app as it registered itself. Anybody may register: it opens nothing, and nothing of it
    is verified.

    It has no secret: one that anybody may register would prove nothing.
    """

    client_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=_NAME_CHARS)
    redirect_uris = ArrayField(models.CharField(max_length=_ADDRESS_CHARS))
    grant_types = ArrayField(models.CharField(max_length=30))
    registered_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name

    @property
    def refreshes(self) -> bool:
        """Whether it asked for refresh tokens."""
        return "refresh_token" in self.grant_types


class ConnectedApp(models.Model):
    """An app that a user allowed, from the exchange of its code on.

    Its key has a text that nobody knows: the key says what the app may do and where, and
    rates, audit lines, expiry and revocation are the key's.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    app = models.ForeignKey(RegisteredApp, models.CASCADE, related_name="connections")
    key = models.OneToOneField(ApiKey, models.CASCADE, related_name="connected_app")
    resource = models.CharField(max_length=_ADDRESS_CHARS)
    redirect_uri = models.CharField(max_length=_ADDRESS_CHARS)

    def __str__(self) -> str:
        return str(self.key)

    @property
    def host(self) -> str:
        """Where its user was sent back to: unlike its name, this is verified."""
        return urlsplit(self.redirect_uri).netloc

    def end(self) -> None:
        """From now on none of its tokens opens anything; it stays in the list for a while."""
        self.key.revoke()
        self.tokens.all().delete()


class AuthorizationCode(models.Model):
    """What a user allowed. The app exchanges it for tokens once; then `connection` is set."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    app = models.ForeignKey(RegisteredApp, models.CASCADE, related_name="codes")
    connection = models.ForeignKey(ConnectedApp, models.CASCADE, null=True, related_name="+")
    digest = models.CharField(max_length=_DIGEST_CHARS, unique=True)
    scopes = _scopes()
    # As in ApiKey: null is all of the owner's palaces.
    subject = models.CharField(max_length=200, blank=True, null=True)  # noqa: DJ001
    resource = models.CharField(max_length=_ADDRESS_CHARS)
    code_challenge = models.CharField(max_length=43)
    redirect_uri = models.CharField(max_length=_ADDRESS_CHARS)
    redirect_uri_given = models.BooleanField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"a code for {self.app}"


class Token(models.Model):
    """An access or refresh token, by its digest."""

    class Kind(models.TextChoices):
        ACCESS = "access"
        REFRESH = "refresh"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    connection = models.ForeignKey(ConnectedApp, models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=7, choices=Kind)
    digest = models.CharField(max_length=_DIGEST_CHARS, unique=True)
    scopes = _scopes()
    expires_at = models.DateTimeField()
    # A refresh token that was used stays until it expires, so that a second use is noticed.
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.get_kind_display()} token of {self.connection_id}"

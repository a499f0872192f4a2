"""Sessions with a user, so that all of a user's sessions can be listed and ended."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY, user_logged_in
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models.functions import Now
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from isolation import row_access

# Keys in a session's data.
DEVICE, SIGNED_IN_AT = "device", "signed_in_at"
SEEN_EVERY = timedelta(minutes=5)
# The first match in the User-Agent header wins: most browsers name others too.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


class Session(AbstractBaseSession):
    # Without a constraint: a session may be saved just when its user is deleted, and then is
    # worth nothing, because nobody is there whom it signs in.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        related_name="sessions",
        db_constraint=False,
    )
    seen_at = models.DateTimeField(
        default=timezone.now, db_default=Now(), help_text="When it was last used, to some minutes."
    )

    @property
    def public_id(self) -> str:
        """The session's id on pages; its key would sign anybody in."""
        return public_id_of(self.session_key)

    @property
    def device(self) -> str:
        return str(self.get_decoded().get(DEVICE, "")) or "A browser"

    @property
    def signed_in_at(self) -> datetime | None:
        at = self.get_decoded().get(SIGNED_IN_AT)
        return datetime.fromtimestamp(at, UTC) if at else None

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        return SessionStore


class SessionStore(DatabaseSessionStore):
    # Of the stored session that was loaded.
    seen_at: datetime | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        assert isinstance(row, Session)  # noqa: S101 - it is made of the class named above.
        row.owner_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        return row

    # The user is known only from the session itself, so its key opens its row.

    def load(self) -> dict[str, Any]:
        with row_access.with_secret(self.session_key or ""):
            return super().load()

    def _get_session_from_db(self) -> Session | None:
        row: Session | None = super()._get_session_from_db()  # type: ignore[misc]
        self.seen_at = row.seen_at if row else None
        return row

    def note_seen(self) -> None:
        """Store the time of last use, at most once every few minutes."""
        now = timezone.now()
        if self.seen_at is None or now - self.seen_at < SEEN_EVERY:
            return
        with row_access.with_secret(self.session_key or ""):
            Session.objects.filter(session_key=self.session_key).update(seen_at=now)
        self.seen_at = now

    def exists(self, session_key: str) -> bool:
        with row_access.with_secret(session_key):
            return super().exists(session_key)

    def save(self, must_create: bool = False) -> None:  # noqa: FBT001, FBT002 - as it is called.
        if self.session_key is None:
            self.create()
            return
        with row_access.with_secret(self.session_key):
            super().save(must_create)

    def delete(self, session_key: str | None = None) -> None:
        with row_access.with_secret(session_key or self.session_key or ""):
            super().delete(session_key)


def public_id_of(session_key: str) -> str:
    return salted_hmac("settings_app.sessions", session_key, algorithm="sha256").hexdigest()[:32]


@receiver(user_logged_in)
def _note_device(request: HttpRequest, **_signal: Any) -> None:
    request.session[DEVICE] = device_of(request.headers.get("User-Agent", ""))
    request.session[SIGNED_IN_AT] = int(time.time())


def device_of(user_agent: str) -> str:
    """The device, such as “Firefox on Linux”; unknown parts are left out."""
    found = [
        next((name for sign, name in names if sign in user_agent), "")
        for names in (_BROWSERS, _SYSTEMS)
    ]
    return " on ".join(filter(None, found))


def sessions_of(user: User, *, but: str | None) -> models.QuerySet[Session]:
    """The user's sessions, without the one of the key `but`."""
    sessions = Session.objects.filter(owner=user, expire_date__gt=timezone.now())
    return sessions.exclude(session_key=but)


def end_one(user: User, public_id: str) -> bool:
    """End a session; returns whether the user had it."""
    for session in sessions_of(user, but=None):
        if constant_time_compare(session.public_id, public_id):
            session.delete()
            return True
    return False


def end_others(user: User, kept: str | None) -> None:
    sessions_of(user, but=kept).delete()

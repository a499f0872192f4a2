"""Sessions that know whose they are, so that all of a person's can be ended at once."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils import timezone

from isolation import row_access


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

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        return SessionStore


class SessionStore(DatabaseSessionStore):
    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        assert isinstance(row, Session)  # noqa: S101 - it is made of the class named above.
        row.owner_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        return row

    # Whose a session is, is known only from the session: its key alone opens its row.

    def load(self) -> dict[str, Any]:
        with row_access.with_secret(self.session_key or ""):
            return super().load()

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


def sessions_of(user: User, *, but: str | None) -> models.QuerySet[Session]:
    """Where the user is signed in now, without the session of the key `but`."""
    sessions = Session.objects.filter(owner=user, expire_date__gt=timezone.now())
    return sessions.exclude(session_key=but)


def end_others(user: User, kept: str | None) -> None:
    sessions_of(user, but=kept).delete()

"""The caller of a tool: its API key and permissions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.contrib.auth.models import User

from api.rest import access
from api.rest.access import check_rate, check_scope
from isolation import row_access
from palace.models import Palace
from settings_app import audit, throttling
from settings_app.api_keys import ApiKey

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller with an API key. Over stdio, the owner gets an unsaved key with all scopes."""

    key: ApiKey

    @classmethod
    def at_home(cls, owner: User, user_id: str | None) -> Caller:
        """The caller of a local command, who may do all that the owner may.

        Args:
            user_id: Limit the caller to this palace; None allows all of the owner's.
        """
        everything = list(ApiKey.Scope.values)
        return cls(ApiKey(owner=owner, name="stdio", scopes=everything, subject=user_id))

    @property
    def is_at_home(self) -> bool:
        """Whether the call came over stdio."""
        return self.key.pk is None

    def has_access(self) -> AbstractContextManager[None]:
        """Inside the block the database shows what the key opens."""
        return row_access.use(self.key.row_access())

    def palace(self, user_id: str | None) -> Palace | None:
        """The existing palace, or None if that person has none yet.

        Raises:
            Problem: 400 or 403, as `palaces.subject_for`.
        """
        return access.palace_of(self.key, user_id)

    def palace_made(self, user_id: str | None) -> Palace:
        return access.palace_made(self.key, user_id)

    def palaces(self) -> list[Palace]:
        return access.palaces_of(self.key)

    def check(self, scope: str) -> None:
        """
        Raises:
            Problem: 403, the key lacks this scope.
        """
        check_scope(self.key, scope)

    def count(self, cost: int) -> None:
        """Count a call that asks for much; the request itself is counted at the door.

        Raises:
            Problem: 429, the key's rate limit is exceeded.
        """
        if cost > 1 and not self.is_at_home:
            check_rate(throttling.count_request(self.key, cost - 1))

    def note(self, tool: str, status: int) -> None:
        """Write an audit line, unless the call came over stdio."""
        if not self.is_at_home:
            audit.note(self.key, door="mcp", action="call", path=tool, status=status)


def has_access(
    function: Callable[Concatenate[Caller, P], R],
) -> Callable[Concatenate[Caller, P], R]:
    """A function of a caller: while it runs the database shows what the key opens."""

    @wraps(function)
    def opened(caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with caller.has_access():
            return function(caller, *args, **kwargs)

    return opened

"""Who calls, and what they may."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.contrib.auth.models import User

from api.rest import palaces
from api.rest.problems import Problem
from isolation import reach
from palace.models import Palace
from settings_app import audit
from settings_app.api_keys import ApiKey

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever holds a key; the owner of this machine has one that is written down nowhere."""

    key: ApiKey

    @classmethod
    def at_home(cls, owner: User, user_id: str | None) -> Caller:
        """Whoever runs a command here may do all that the owner may.

        Args:
            user_id: The one palace to enter; None: all that the owner has.
        """
        everything = list(ApiKey.Scope.values)
        return cls(ApiKey(owner=owner, name="stdio", scopes=everything, subject=user_id))

    def within_reach(self) -> AbstractContextManager[None]:
        """Inside the block the database shows what the key opens."""
        return reach.within(self.key.reach())

    def palace(self, user_id: str | None) -> Palace | None:
        """The one that there is; None where nothing was ever told of that person.

        Raises:
            Problem: 400 or 403, as `palaces.subject_for`.
        """
        return palaces.palace_of(self.key, user_id)

    def palace_made(self, user_id: str | None) -> Palace:
        return palaces.palace_made(self.key, user_id)

    def palaces(self) -> list[Palace]:
        return palaces.palaces_of(self.key)

    def check(self, scope: str) -> None:
        """
        Raises:
            Problem: 403, the key has not this scope.
        """
        if not self.key.may(scope):
            said = f"This key may not {scope}; make one with the scope “{scope}”."
            raise Problem(403, "missing_scope", said)

    def note(self, tool: str, status: int) -> None:
        """A line on record for a write, unless it was the owner's own."""
        if self.key.pk is not None:
            audit.note(self.key, door="mcp", action="call", path=tool, status=status)


def within_reach(
    function: Callable[Concatenate[Caller, P], R],
) -> Callable[Concatenate[Caller, P], R]:
    """A function of a caller: while it runs the database shows what the key opens."""

    @wraps(function)
    def opened(caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with caller.within_reach():
            return function(caller, *args, **kwargs)

    return opened

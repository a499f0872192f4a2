"""The scope of a call: an account, a palace, and optionally an agent or run within it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User

from language.storable import is_storable, storable_id
from palace.knowledge.facts import Scope
from palace.knowledge.facts.filters import quoted
from palace.models import Drawer, DrawerQuerySet, FactQuerySet, Palace
from palace.sdk.errors import BadInput, ScopeError, SetupError, WrongPalace
from settings_app.users import find_owner

FIRST = "owner"
MOST_CHARS = 150
BY = "sdk"


@dataclass(frozen=True, slots=True)
class CallScope:
    """
    Attributes:
        user: Whose palace; empty for the owner's own.
        agent, run: Empty for all.
    """

    user: str = ""
    agent: str = ""
    run: str = ""

    @classmethod
    def read(
        cls,
        user_id: str | None,
        agent_id: str | None,
        run_id: str | None,
        *,
        bound_to: str | None = None,
    ) -> Self:
        """
        Args:
            bound_to: The only palace allowed, and the default; empty for the owner's own. None
                allows any.

        Raises:
            ScopeError: no id is given, or one is blank or not text.
            WrongPalace: the user_id names another palace than `bound_to`.
        """
        given: dict[str, object] = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        if bound_to is None and all(value is None for value in given.values()):
            raise ScopeError
        for name, value in given.items():
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ScopeError(f"{name} is text that is not blank, not {quoted(value)}.")
        scope = cls(*(storable_id(value or "") for value in (user_id, agent_id, run_id)))
        if bound_to is None:
            return scope
        if user_id is not None and scope.user != bound_to:
            raise WrongPalace
        return replace(scope, user=bound_to)

    def palace(self, owner_id: int) -> Palace | None:
        """The existing palace, or None."""
        return Palace.objects.filter(owner=owner_id, subject=self.user).first()

    def palace_made(self, owner_id: int) -> Palace:
        palace, _ = Palace.objects.get_or_create(owner_id=owner_id, subject=self.user)
        return palace

    def narrow(self, facts: FactQuerySet) -> FactQuerySet:
        return facts.within_scope(agent=self.agent, run=self.run)

    def added(self) -> DrawerQuerySet:
        """Messages added within the scope, in any palace."""
        named = {"agent": self.agent, "conversation": self.run}
        scope = {name: value for name, value in named.items() if value}
        return Drawer.objects.filter(source=BY, **scope)

    def writing(self) -> Scope:
        return Scope(BY, self.agent, self.run)


def account_of(owner: User | str | None) -> User:
    """The account with this name or e-mail address, created without a password if missing.

    Args:
        owner: None for the first superuser, on a single-user installation.

    Raises:
        BadInput: the name is invalid, or several accounts have this address.
        SetupError: the account is inactive, or None was given on a multi-user server.
    """
    found = _first() if owner is None else owner
    user = _named(found) if isinstance(found, str) else found
    if not user.is_active:
        raise SetupError(f"The account {user.get_username()} is closed; open it at /admin/.")
    return user


def _first() -> User:
    if not settings.USES_EMBEDDED_SERVICES:
        raise SetupError("This is a server with many accounts; name one: Memory(owner=…).")
    return find_owner() or _made(FIRST, is_staff=True, is_superuser=True)


def _named(name: str) -> User:
    if not name.strip() or len(name) > MOST_CHARS or not is_storable(name):
        raise BadInput(f"An owner is a name or an address of 1 to {MOST_CHARS} characters.")
    users = get_user_model().objects
    user = users.filter(username=name).first()
    if user is not None:
        return user
    with_address = users.filter(email__iexact=name)[:2] if "@" in name else ()
    if len(with_address) > 1:
        raise BadInput(f"More than one account has the address {name}; give its user name.")
    return with_address[0] if with_address else _made(name)


def _made(name: str, **more: bool) -> User:
    """Create the account; safe to call concurrently."""
    address = name if "@" in name else ""
    defaults = {"email": address, "password": make_password(None), **more}
    user, _ = get_user_model().objects.get_or_create(username=name, defaults=defaults)
    return user

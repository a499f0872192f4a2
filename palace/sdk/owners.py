"""The account that owns a program's memories; created if missing."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User

from language.storable import is_storable
from palace.sdk.errors import BadInput, SetupError
from settings_app.owner import find_owner

FIRST = "owner"
MOST_CHARS = 150


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

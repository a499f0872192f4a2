"""One-time links: an address that signs in once, within a short time.

The link acts on GET, because that is what people expect of an address printed in a terminal. It
is safe enough to do so: it is printed only where its owner looks, a browser that merely fetches
ahead says so and is turned away, and a used link is replaced by one command.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core import signing
from django.core.cache import cache
from django.urls import get_script_prefix
from django.utils.crypto import constant_time_compare, salted_hmac

LINK_LASTS = timedelta(minutes=15)
# The address printed at a start is often opened much later.
FIRST_LINK_LASTS = timedelta(hours=24)

# Not looked up: that would import every page, for seconds, in the process that starts Loci.
ROUTE = "sign-in/once/"
_SALT = "settings_app.sign_in.one_time_link"


class LinkRefused(Exception):
    """The link does not sign anybody in; the message says why.

    Attributes:
        user: The user of the link, if its signature is valid.
    """

    def __init__(self, message: str, user: User | None = None) -> None:
        super().__init__(message)
        self.user = user


@dataclass(frozen=True, slots=True)
class _Claim:
    user_id: int
    account_state: str
    expires_at: int
    nonce: str


def one_time_link(user: User, *, lasts: timedelta = LINK_LASTS) -> str:
    """A path like `/sign-in/once/<token>/`.

    It stops working once used, when `lasts` has passed, and as soon as the user has signed in by
    any other way or has changed the password.
    """
    expires_at = int(time.time() + lasts.total_seconds())
    claim = [user.pk, _account_state(user), expires_at, secrets.token_urlsafe(12)]
    return f"{get_script_prefix()}{ROUTE}{signing.dumps(claim, salt=_SALT)}/"


def redeem(token: str) -> User:
    """The user whom `token` signs in. A second use is refused, even a concurrent one.

    Raises:
        LinkRefused: The token is damaged, too old, used, or overtaken by a later sign-in.
    """
    claim = _read(token)
    user = get_user_model().objects.filter(pk=claim.user_id, is_active=True).first()
    if user is None:
        raise LinkRefused("The account of this link no longer exists.")
    if claim.expires_at <= time.time():
        raise LinkRefused("This link is too old.", user)
    if not constant_time_compare(claim.account_state, _account_state(user)):
        raise LinkRefused("This link has been used already.", user)
    remaining_s = max(1, claim.expires_at - int(time.time()))
    # `add` is atomic: of two requests at the same moment only one gets through.
    if not cache.add(f"sign-in-once:{claim.nonce}", 1, timeout=remaining_s):
        raise LinkRefused("This link has been used already.", user)
    return user


def _read(token: str) -> _Claim:
    try:
        content: Any = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        raise LinkRefused("This link is not complete, or not from this server.") from None
    return _Claim(*content)


def _account_state(user: User) -> str:
    """A value that changes with every sign-in and every new password."""
    seen = user.last_login.isoformat() if user.last_login else ""
    return salted_hmac(_SALT, f"{seen}|{user.password}", algorithm="sha256").hexdigest()[:32]

"""Accounts: one-time links that sign a user in, users found for a command, and closing an account.

A link acts on GET, because that is what people expect of an address printed in a terminal. It is
safe enough to do so: it is printed only where its owner looks, a browser that merely fetches
ahead says so and is turned away, and a used link is replaced by one command.

Closing is one short transaction. From then on no password, key, link or session opens the account,
and its name is free. `palace.curation.deletion` then deletes its data, and resumes after a kill.
"""

from __future__ import annotations

import json
import secrets
import time
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import uuid4

from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core import signing
from django.core.cache import cache
from django.core.management.base import CommandError
from django.db import transaction
from django.db.models import CharField, Count, Field, Func, Model, Q, QuerySet, TextField, Value
from django.urls import get_script_prefix
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from llm import usage
from settings_app import throttling
from settings_app.api_keys import ApiKey
from settings_app.secrets import Unreadable, seal, unseal

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


# Characters; names are shown at the top of every page.
LONGEST_NAME = 40


class Folded(Func):
    """The expression of the unique index on users' names; see migration 0002."""

    template = '(casefold((%(expressions)s) COLLATE "pg_unicode_fast"))'
    output_field = CharField()


def people_called(name: str) -> QuerySet[User]:
    """The user of this name, in any spelling of its case; or nobody."""
    people = get_user_model().objects.alias(folded=Folded("username"))
    return people.filter(folded=Folded(Value(unicodedata.normalize("NFKC", name))))


def find_owner() -> User | None:
    """The first active superuser; without one, the first active user."""
    people = get_user_model().objects.filter(is_active=True)
    return people.order_by("-is_superuser", "pk").first()


def person_or_owner(name: str | None) -> User:
    """The active user of that name or e-mail address; without a name, the owner.

    Raises:
        CommandError: there is nobody, or more than one.
    """
    person = _find(name) if name else find_owner()
    if person is None:
        raise CommandError(
            f"There is no user yet. Start Loci once with `{settings.START}`, "
            f"or make one with `{settings.MANAGE} createsuperuser`."
        )
    return person


def _find(name: str) -> User:
    people = get_user_model().objects.filter(is_active=True)
    found = list(people.filter(Q(username=name) | Q(email__iexact=name))[:2])
    if len(found) != 1:
        raise CommandError(
            f"{'Several users are' if found else 'No active user is'} called {name!r}. "
            "Give a user's name as it is written at sign-in."
        )
    return found[0]


def rows_of(people: Collection[User]) -> dict[str, int]:
    """The number of their rows by kind, named in the plural."""
    counts = Counter({"users": len(people)})
    first, *others = (_counted(model, lookup, people) for model, lookup in models_of_people())
    for kind, count in first.union(*others, all=True):
        counts[kind] += count
    return dict(+counts)


def _counted(
    model: type[Model], lookup: str, people: Collection[User]
) -> QuerySet[Any, tuple[str, int]]:
    """The kind's name, and how many of its rows belong to these people."""
    # No model has fields of these names.
    kind = Value(str(model._meta.verbose_name_plural), TextField())
    found = model._base_manager.filter(**{f"{lookup}__in": people}).order_by()
    rows: Any = found.annotate(_kind=kind).values("_kind").annotate(_rows=Count("*"))
    counted: QuerySet[Any, tuple[str, int]] = rows.values_list("_kind", "_rows")
    return counted


def models_of_people() -> Iterator[tuple[type[Model], str]]:
    """Each model whose rows have an owner, with the lookup of the owner."""
    for model in apps.get_models():
        for field in model._meta.get_fields():
            if not isinstance(field, Field):
                continue
            if field.related_model is User and not field.many_to_many:
                yield model, field.name
            elif field.name == "palace":
                yield model, "palace__owner"


# Has a space, so that no user can have this name.
_CLOSED = "closed "


@dataclass(frozen=True, slots=True)
class Receipt:
    """The rows of an account when it was closed, by kind, without the account's name."""

    user_id: int
    closed_at: datetime
    rows: dict[str, int]

    @property
    def is_finished(self) -> bool:
        """Whether all rows are deleted by now."""
        return not User.objects.filter(pk=self.user_id).exists()

    def sealed(self) -> str:
        """The receipt, encrypted, for an address; the server does not store it."""
        return seal(json.dumps([self.user_id, self.closed_at.isoformat(), self.rows]))

    @classmethod
    def unsealed(cls, text: str) -> Self:
        """
        Raises:
            Unreadable: it is not one of this server's.
        """
        opened = unseal(text)
        try:
            user_id, closed_at, rows = json.loads(opened)
            return cls(user_id, datetime.fromisoformat(closed_at), rows)
        except (TypeError, ValueError):
            raise Unreadable from None


def close(user: User, *, but: Collection[type[Model]]) -> Receipt:
    """Close the account, and delete what belongs to it directly: keys, sessions, settings, costs.

    Args:
        but: Models whose rows are deleted later, because they may be many.
    """
    with transaction.atomic():
        locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        receipt = Receipt(locked.pk, timezone.now(), rows_of([locked]))
        keys, name = list(ApiKey.objects.filter(owner=locked)), locked.get_username()
        _lock(locked)
        for model, lookup in models_of_people():
            if model not in but and lookup != "palace__owner":
                model._base_manager.filter(**{lookup: locked}).delete()
        _entries_about(locked).delete()
    throttling.forget_requests(keys)
    throttling.forget_name(name)
    usage.forget_totals(receipt.user_id)
    return receipt


def closed() -> QuerySet[User]:
    """Accounts that are closed but not yet deleted."""
    return User.objects.filter(username__startswith=_CLOSED, is_active=False)


def _lock(user: User) -> None:
    user.username = f"{_CLOSED}{uuid4().hex}"
    user.first_name = user.last_name = user.email = ""
    user.is_active = user.is_staff = user.is_superuser = False
    user.set_unusable_password()
    user.save()


def _entries_about(user: User) -> QuerySet[LogEntry]:
    """The admin site's log entries about these people, which have their names."""
    kind = ContentType.objects.get_for_model(User)
    return LogEntry.objects.filter(content_type=kind, object_id=str(user.pk))

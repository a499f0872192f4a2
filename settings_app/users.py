"""Find users: the owner, by name, or by name or e-mail address for a command."""

from __future__ import annotations

import unicodedata

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db.models import CharField, Func, Q, QuerySet, Value

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

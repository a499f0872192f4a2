"""Whom a command in a terminal is about."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db.models import Q

from settings_app.owner import find_owner


def person_or_owner(name: str | None) -> User:
    """The active user of that name or e-mail address; without a name, the owner.

    Raises:
        CommandError: there is nobody, or more than one.
    """
    person = _find(name) if name else find_owner()
    if person is None:
        raise CommandError(
            "There is no user yet. Start Loci once with `make run`, "
            "or make one with `manage.py createsuperuser`."
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

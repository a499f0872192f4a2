"""Print a fresh one-time link."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from settings_app.owner import find_owner
from settings_app.sign_in import LINK_LASTS, one_time_link


class Command(BaseCommand):
    help = "Print an address that signs a user in, once. Without a name: the owner."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", nargs="?", help="A user's name or e-mail address.")
        parser.add_argument(
            "--base",
            default="http://localhost:8000",
            help="Where Loci answers (default: %(default)s).",
        )

    def handle(self, *, user: str | None, base: str, **options: Any) -> None:
        person = _find(user) if user else find_owner()
        if person is None:
            raise CommandError(
                "There is no user yet. Start Loci once with `make run`, "
                "or make one with `manage.py createsuperuser`."
            )
        minutes = int(LINK_LASTS.total_seconds() // 60)
        self.stderr.write(f"Signs in {person.get_username()}, once, for {minutes} minutes:")
        self.stdout.write(base.rstrip("/") + one_time_link(person))


def _find(name: str) -> User:
    people = get_user_model().objects.filter(is_active=True)
    found = list(people.filter(Q(username=name) | Q(email__iexact=name))[:2])
    if len(found) != 1:
        raise CommandError(
            f"{'Several users are' if found else 'No active user is'} called {name!r}. "
            "Give a user's name as it is written at sign-in."
        )
    return found[0]

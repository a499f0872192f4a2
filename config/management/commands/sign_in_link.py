"""Print a fresh one-time link."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from config.management.base import LociCommand
from isolation import row_access
from settings_app import second_step
from settings_app.accounts import LINK_LASTS, one_time_link, person_or_owner


class Command(LociCommand):
    help = "Print an address that signs a user in, once. Without a name: the owner."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", nargs="?", help="A user's name or e-mail address.")
        parser.add_argument(
            "--base",
            default="http://localhost:8000",
            help="Where Loci answers (default: %(default)s).",
        )

        parser.add_argument(
            "--end-second-step",
            action="store_true",
            help="Switch off the code that is asked for after the password or this address.",
        )

    def handle(self, *, user: str | None, base: str, end_second_step: bool, **options: Any) -> None:
        person = person_or_owner(user)
        if end_second_step:
            with row_access.open_account(person.pk):
                second_step.end(person)
        minutes = int(LINK_LASTS.total_seconds() // 60)
        self.stderr.write(f"Signs in {person.get_username()}, once, for {minutes} minutes:")
        self.stdout.write(base.rstrip("/") + one_time_link(person))

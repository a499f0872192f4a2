"""Encrypt stored keys and secrets again, under a new secret key."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from config import preconditions, secret_key_file
from config.environment import env_text
from config.key_rotation import rotate
from settings_app.management.base import LociCommand

ELSEWHERE = (
    "LOCI_SECRET_KEY is set, so the key is yours to change: set LOCI_SECRET_KEY to a new one, put "
    "the former one into LOCI_OLD_SECRET_KEYS, start Loci again, then run this without --new."
)
UNREADABLE = (
    "{count} cannot be read: they were encrypted under a key that is neither LOCI_SECRET_KEY nor "
    "one of LOCI_OLD_SECRET_KEYS. Add that key and run this again; or have their owners enter them "
    "again."
)


class Command(LociCommand):
    help = (
        "Encrypt stored provider keys, webhook secrets and second steps again, under "
        "LOCI_SECRET_KEY. Afterwards LOCI_OLD_SECRET_KEYS is needed no more."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--new",
            action="store_true",
            help="Make a new secret key first; only where Loci keeps it, in LOCI_HOME.",
        )

    def handle(self, *, new: bool, **options: Any) -> None:
        keeps_key = not env_text("LOCI_SECRET_KEY")
        if new and not keeps_key:
            raise CommandError(ELSEWHERE)
        with ExitStack() as stack:
            if keeps_key:
                # A Loci that runs knows the former key only, and could not read what is new.
                stack.enter_context(self._alone())
            if new:
                self._make_key()
            self._rotate()
            if keeps_key:
                secret_key_file.keep_keys(settings.EMBEDDED.home, [settings.SECRET_KEY])

    def _alone(self) -> Any:
        return preconditions.only_one(settings.EMBEDDED.home, "`manage.py rotate_keys`")

    def _make_key(self) -> None:
        former = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
        key = secrets.token_urlsafe(50)
        secret_key_file.keep_keys(settings.EMBEDDED.home, [key, *former])
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = key, former

    def _rotate(self) -> None:
        done = rotate()
        self.stdout.write(f"Encrypted again: {done.rotated}. Already current: {done.current}.")
        if done.unreadable:
            raise CommandError(UNREADABLE.format(count=done.unreadable))
        self.stdout.write("Nothing is encrypted under an old key any more.")

"""Encrypt stored keys and secrets again, under a new secret key.

Each row is one statement. If it is killed, each row is encrypted under one of the two keys, both of
which can be read, and the next run continues.
"""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import models

from config import environment, preconditions
from config.environment import env_text
from config.management.base import LociCommand
from isolation import row_access
from palace.models import Webhook
from settings_app.models import MemorySettings, SecondStep
from settings_app.secrets import Unreadable, is_current, seal, unseal

ELSEWHERE = (
    "LOCI_SECRET_KEY is set, so the key is yours to change: set LOCI_SECRET_KEY to a new one, put "
    "the former one into LOCI_OLD_SECRET_KEYS, start Loci again, then run this without --new."
)
UNREADABLE = (
    "{count} cannot be read: they were encrypted under a key that is neither LOCI_SECRET_KEY nor "
    "one of LOCI_OLD_SECRET_KEYS. Add that key and run this again; or have their owners enter them "
    "again."
)
# Every column that `settings_app.secrets.seal` fills.
SEALED: tuple[tuple[type[models.Model], str], ...] = (
    (MemorySettings, "sealed_key"),
    (SecondStep, "sealed_secret"),
    (Webhook, "sealed_secret"),
    (Webhook, "former_sealed_secret"),
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
                # A running Loci knows only the former key, and could not read new secrets.
                stack.enter_context(self._alone())
            if new:
                self._make_key()
            self._rotate()
            if keeps_key:
                environment.keep_keys(settings.EMBEDDED.home, [settings.SECRET_KEY])

    def _alone(self) -> Any:
        return preconditions.only_one(settings.EMBEDDED.home, f"`{settings.MANAGE} rotate_keys`")

    def _make_key(self) -> None:
        former = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
        key = secrets.token_urlsafe(50)
        environment.keep_keys(settings.EMBEDDED.home, [key, *former])
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = key, former

    def _rotate(self) -> None:
        done = rotate()
        self.stdout.write(f"Encrypted again: {done.rotated}. Already current: {done.current}.")
        if done.unreadable:
            raise CommandError(UNREADABLE.format(count=done.unreadable))
        self.stdout.write("Nothing is encrypted under an old key any more.")


@dataclass(slots=True)
class Rotation:
    """The number of secrets by result.

    Attributes:
        unreadable: Those that neither the current nor an old key decrypts.
    """

    current: int = 0
    rotated: int = 0
    unreadable: int = 0


def rotate() -> Rotation:
    """Safe to run at any time, also while Loci runs, and repeatedly."""
    done = Rotation()
    for _ in rotated_one_by_one(done):
        pass
    return done


def rotated_one_by_one(done: Rotation) -> Iterator[None]:
    """Counts each processed secret in `done`."""
    with row_access.sweep("rotation"):
        for model, field in SEALED:
            rows: models.QuerySet[Any, tuple[int, str]] = model._default_manager.exclude(
                **{field: ""}
            ).values_list("pk", field)
            for pk, sealed in list(rows):
                _rotate(model, field, pk, sealed, done)
                yield


def _rotate(model: type[models.Model], field: str, pk: int, sealed: str, done: Rotation) -> None:
    if is_current(sealed):
        done.current += 1
        return
    try:
        again = seal(unseal(sealed))
    except Unreadable:
        done.unreadable += 1
        return
    # Unless the owner has just saved another secret, which must not be lost.
    unchanged = model._default_manager.filter(pk=pk, **{field: sealed})
    done.rotated += unchanged.update(**{field: again})

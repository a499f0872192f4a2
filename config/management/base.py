"""The base of Loci's commands: whose palace a command works on, and how a long one is stopped."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

import psycopg
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError
from django.db.models import Q

from isolation import row_access
from isolation.row_access import Access
from language.storable import storable_id
from llm.checks import TAG
from palace.models import Palace
from settings_app.accounts import find_owner


class LociCommand(BaseCommand):
    """A command that first checks the models in use.

    Django's other checks import every page and tag, which takes longer than most commands do;
    `manage.py check` runs them.
    """

    requires_system_checks = (TAG,)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """
        Raises:
            CommandError: among others, the database is away, or its disk is full.
        """
        try:
            return super().execute(*args, **options)
        except (OperationalError, InterfaceError, psycopg.OperationalError) as error:
            reason = (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
            said = f"The database failed: {reason}. Look at its disk and its log, then try again."
            raise CommandError(said) from error


class PalaceCommand(LociCommand):
    """A command about one palace, without access to any other."""

    def execute(self, *args: Any, **options: Any) -> Any:
        with row_access.deny_all():
            return super().execute(*args, **options)


def add_user_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--user",
        "--owner",
        dest="user",
        default="",
        metavar="NAME_OR_EMAIL",
        help="Whose palace; without it the owner's.",
    )
    parser.add_argument(
        "--subject",
        default="",
        metavar="USER_ID",
        help="The palace that the user's programs keep for this person; else the user's own.",
    )


def palace_of(name: str, subject: str = "") -> Palace:
    """The palace of the user with this name or address; of the owner for an empty one.

    From here on the command reaches the palaces of that user.

    Args:
        subject: The person that the user's programs keep the palace for; the user if empty.

    Raises:
        CommandError: there is no such user, or no such palace.
    """
    user = user_of(name)
    row_access.enter(Access(owner=user.pk))
    if not subject:
        return Palace.objects.own(user)
    palace = Palace.objects.filter(owner=user, subject=storable_id(subject)).first()
    if palace is None:
        raise CommandError(f"{user} keeps no palace for {subject!r}.")
    return palace


def palace_or_new(name: str, subject: str = "") -> tuple[Palace, bool]:
    """`palace_of`, created if missing, and whether it was.

    Raises:
        CommandError: there is no such user, or the subject is blank.
    """
    if subject and not subject.strip():
        raise CommandError("--subject is blank. Give a user_id, or leave it out.")
    user = user_of(name)
    row_access.enter(Access(owner=user.pk))
    return Palace.objects.get_or_create(owner=user, subject=storable_id(subject))


def user_of(name: str) -> User:
    """The user with this name or address; the owner for an empty one.

    Raises:
        CommandError: there is none, or more than one.
    """
    if not name:
        owner = find_owner()
        # With nobody in charge, the first user is as much a stranger as any other.
        if owner is None or not owner.is_superuser:
            raise CommandError(
                f"There is no owner yet. Start Loci once with `{settings.START}`, "
                "which makes the owner, or name somebody with --user."
            )
        return owner
    users = get_user_model().objects.filter(Q(username=name) | Q(email__iexact=name))[:2]
    if len(users) != 1:
        many = "More than one user has" if users else "There is no user with"
        raise CommandError(f"{many} the name or address {name!r}; give --user a user name.")
    return users[0]


class Stopped(Exception):
    """Somebody asked to stop."""


class StopSignals:
    """Inside this block the first signal to stop counts; any more change nothing.

    It is only noted, for `check` to raise between two steps, until `then` says what to do.
    Raising where the program happens to be could leave a step half done.
    """

    def __init__(self) -> None:
        self._act: Callable[[], object] | None = None
        self._asked = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` has a program outlive its terminal by ignoring this signal.
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # As it was given to us.

    @property
    def is_asked(self) -> bool:
        return self._asked

    def check(self) -> None:
        """
        Raises:
            Stopped: a signal has come.
        """
        if self._asked:
            raise Stopped

    def then(self, act: Callable[[], object]) -> None:
        """From now on, do this; at once if the signal has come already."""
        self._act = act
        if self._asked:
            act()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self._asked:
            self._asked = True
            if self._act is not None:
                self._act()

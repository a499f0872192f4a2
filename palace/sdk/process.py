"""Set up a process for the SDK: Django, the embedded services and the tables, once each.

If Django is set up already, as in a web process or a command, nothing is done.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
from collections.abc import Iterator
from threading import Lock

import django
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections

from isolation import row_access
from palace.sdk.errors import SetupError


class _Process:
    """
    Attributes:
        is_ours: Django was set up here, so services and tables are managed here too.
    """

    def __init__(self) -> None:
        self.is_ours = False
        self._is_ready = False
        self._turn = Lock()
        self._resources = contextlib.ExitStack()

    def make_ready(self) -> None:
        with self._turn:
            if self._is_ready or not self.is_ours:
                return
            if settings.USES_EMBEDDED_SERVICES:
                self._start_services()
            bring_tables_up_to_date()
            self._is_ready = True

    def _start_services(self) -> None:
        try:
            self._resources.enter_context(settings.EMBEDDED.services())
        except OSError as error:
            raise SetupError(f"Loci's own PostgreSQL and Redis could not start: {error}") from error
        atexit.register(self._leave, os.getpid())

    def _leave(self, pid: int) -> None:
        # In a forked process they belong to the parent.
        if os.getpid() == pid:
            connections.close_all()
            self._resources.close()


_process = _Process()


def set_up_django() -> None:
    """Set up Django, leaving the program's logging alone.

    Raises:
        SetupError: a setting is invalid, or its folder is not usable.
    """
    if apps.ready:
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        settings.LOGGING_CONFIG = None
        django.setup()
    except (ImproperlyConfigured, OSError) as error:
        raise SetupError(f"Loci could not be set up: {error}") from error
    _process.is_ours = True


def make_ready() -> None:
    """Start the embedded services and migrate the database, unless done already.

    The services stop with the last process that uses them.

    Raises:
        SetupError: the services cannot start, or an external database is not migrated.
    """
    _process.make_ready()


def bring_tables_up_to_date() -> None:
    """
    Raises:
        SetupError: the database is external; its operator must migrate it.
    """
    # This module is imported before Django has its models.
    from palace.storage.indexing.spaces import are_migrations_pending  # noqa: PLC0415

    with row_access.maintenance():
        if not are_migrations_pending():
            return
    if not settings.USES_EMBEDDED_SERVICES:
        raise SetupError(
            "The database's tables are not those of this version. Run "
            f"`{settings.MANAGE} migrate` once, then this again."
        )
    with _one_at_a_time():
        call_command("migrate", verbosity=0, interactive=False)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (settings.EMBEDDED.locks / "migrate.lock").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield

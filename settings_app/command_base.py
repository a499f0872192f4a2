"""The base of Loci's own commands."""

from __future__ import annotations

from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

from llm.checks import TAG


class LociCommand(BaseCommand):
    """A command that first checks the models in use.

    Django's other checks import every page and tag, which takes longer than most commands do;
    `manage.py check` and `manage.py migrate` run them.
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

#!/usr/bin/env python
"""Django's command line. Without DATABASE_URL a command has the embedded services while it runs."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

try:
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
except ModuleNotFoundError:
    sys.exit("Loci: its packages are missing. Run `make setup`, then `.venv/bin/python manage.py`.")

from config import embedded, environment, preconditions
from config.preconditions import wait_for_database
from isolation import row_access

# These need no database, or see to it themselves.
WITHOUT_SERVICES = {
    "help",
    "--help",
    "-h",
    "version",
    "--version",
    "run",
    "build_embedder",
}
# These read no table, unless they are told which database to look at.
WITHOUT_DATABASE = {"check", "collectstatic", "diffsettings", "makemigrations"}
# Nor do these steps of the benchmarks.
STEPS_WITHOUT_SERVICES = {"download", "score-retrieval"}
# Django's own, by which an operator looks at all tables, or changes them.
FROM_ABOVE = {
    "clearsessions",
    "dbshell",
    "dumpdata",
    "flush",
    "loaddata",
    "makemigrations",
    "shell",
    "showmigrations",
    "sqlmigrate",
}
# What the disk may answer, and a person can mend.
DISK_ERRORS = {
    errno.ENOSPC: "The disk is full; free some space",
    errno.EDQUOT: "Your share of the disk is used up; free some space",
    errno.EROFS: "The disk is read-only; set LOCI_HOME to a folder that can be written",
    errno.EACCES: "Access was refused; run Loci as the user it belongs to",
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        _run_command()
    except (embedded.ServiceError, preconditions.CannotStart, ImproperlyConfigured) as error:
        sys.exit(f"Loci: {error}")
    except KeyboardInterrupt:
        sys.exit("\nLoci: stopped.")
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        sys.exit(f"Loci: {DISK_ERRORS[error.errno]} ({error}).")


def _run_command() -> None:
    environment.runs_command = True
    from config import settings  # noqa: PLC0415 - read only once the environment is set.

    needs_services = (
        len(sys.argv) > 1
        and sys.argv[1] not in WITHOUT_SERVICES
        and STEPS_WITHOUT_SERVICES.isdisjoint(sys.argv[2:3])
    )
    with contextlib.ExitStack() as stack:
        if needs_services and settings.USES_EMBEDDED_SERVICES:
            stack.enter_context(embedded.services(settings.EMBEDDED))
        elif needs_services and (sys.argv[1] not in WITHOUT_DATABASE or "--database" in sys.argv):
            wait_for_database(settings.DATABASE, settings.DB_START_WAIT_S, _say)
        if FROM_ABOVE.intersection(sys.argv[1:2]):
            row_access.allow_all_by_default()
        execute_from_command_line(sys.argv)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()

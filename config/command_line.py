"""Run a command with the services it needs, for `manage.py` and `locipalace`.

Without DATABASE_URL the embedded services run while the command does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line, get_commands
from django.core.management.base import CommandError

from config import embedded, environment, preconditions
from config.preconditions import wait_for_database
from isolation import row_access

# These need no database, or start it themselves.
WITHOUT_SERVICES = {
    "help",
    "--help",
    "-h",
    "version",
    "--version",
    "run",
    "build_embedder",
    "fire",
    "load",
    "doctor",
}
# These read no table, unless an option names the database to look at.
WITHOUT_DATABASE = {"check", "collectstatic", "diffsettings", "makemigrations"}
# These steps of the benchmarks read no table either.
STEPS_WITHOUT_SERVICES = {"download", "score-retrieval"}
# Django's own commands, with which an operator reads or changes any table.
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
# Disk errors that the user can fix.
DISK_ERRORS = {
    errno.ENOSPC: "The disk is full; free some space",
    errno.EDQUOT: "Your share of the disk is used up; free some space",
    errno.EROFS: "The disk is read-only; set LOCI_HOME to a folder that can be written",
    errno.EACCES: "Access was refused; run Loci as the user it belongs to",
}


def main(
    arguments: Sequence[str] | None = None,
    execute: Callable[[list[str]], None] = execute_from_command_line,
) -> None:
    """Run a command; known errors end the process with a message.

    Args:
        arguments: The program, the command and its arguments; by default `sys.argv`.
        execute: Given the arguments, while the services run.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    given = list(sys.argv if arguments is None else arguments)
    try:
        _run_command(given, execute)
        sys.stdout.flush()
    except BrokenPipeError:
        # What reads the output, such as `head`, has ended. What is left would be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except CommandError as error:
        _say(f"Loci: {error}")
        sys.exit(error.returncode)
    except (embedded.ServiceError, preconditions.CannotStart, ImproperlyConfigured) as error:
        sys.exit(f"Loci: {error}")
    except KeyboardInterrupt:
        sys.exit("\nLoci: stopped.")
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        sys.exit(f"Loci: {DISK_ERRORS[error.errno]} ({error}).")


def _run_command(given: list[str], execute: Callable[[list[str]], None]) -> None:
    environment.runs_command = True
    from config import settings  # noqa: PLC0415 - read only once the environment is set.

    name, rest = (given[1:2] or [""])[0], given[2:]
    needs_services = (
        bool(name)
        and name not in WITHOUT_SERVICES
        and STEPS_WITHOUT_SERVICES.isdisjoint(rest[:1])
        and _is_command(name)
    )
    with contextlib.ExitStack() as stack:
        if needs_services and settings.USES_EMBEDDED_SERVICES:
            stack.enter_context(embedded.services(settings.EMBEDDED))
        elif needs_services and (name not in WITHOUT_DATABASE or "--database" in rest):
            wait_for_database(settings.DATABASE, settings.DB_START_WAIT_S, _say)
        if name in FROM_ABOVE:
            row_access.allow_all_by_default()
        execute(given)


def _is_command(name: str) -> bool:
    """Django itself refuses unknown ones, and names the closest."""
    django.setup()
    return name in get_commands()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")

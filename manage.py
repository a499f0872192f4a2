#!/usr/bin/env python
"""Django's command line. Without DATABASE_URL a command has the embedded services while it runs."""

from __future__ import annotations

import contextlib
import os
import sys

from django.core.management import execute_from_command_line

from config import embedded

# These need no database, or see to it themselves.
WITHOUT_SERVICES = {
    "help",
    "--help",
    "-h",
    "version",
    "--version",
    "run",
    "build_embedder",
    "collectstatic",
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from config import settings  # noqa: PLC0415 - read only once the environment is set.

    needs_services = len(sys.argv) > 1 and sys.argv[1] not in WITHOUT_SERVICES
    block = (
        embedded.services(settings.EMBEDDED)
        if settings.USES_EMBEDDED_SERVICES and needs_services
        else contextlib.nullcontext()
    )
    try:
        with block:
            execute_from_command_line(sys.argv)
    except embedded.ServiceError as error:
        sys.exit(f"Loci: {error}")


if __name__ == "__main__":
    main()

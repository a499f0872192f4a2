"""Run management commands; imported once Django is set up."""

from __future__ import annotations

import sys

from django.conf import settings
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import OutputWrapper
from django.db import connections

from palace.sdk.operations import account_of
from palace.sdk.process import bring_tables_up_to_date


def build_embedder() -> None:
    """Build the embedding model if it is not there; at first its weights are fetched."""
    call_command("build_embedder", stdout=OutputWrapper(sys.stderr))


def make_tables() -> None:
    """On this machine the command may be the first one: make the tables and the owner."""
    if settings.USES_EMBEDDED_SERVICES:
        bring_tables_up_to_date()
        account_of(None)


def execute(given: list[str]) -> None:
    """Run `[program, command, argument …]`.

    Raises:
        CommandError: as the command has it, for the caller to show.
    """
    program, name, *rest = given
    command = load_command_class(get_commands()[name], name)
    options = vars(command.create_parser(program, name).parse_args(rest))
    try:
        command.execute(*options.pop("args", ()), **options)
    finally:
        connections.close_all()

"""`manage.py mcp`: the palace for one assistant on this machine, over standard input and output."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import anyio
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from mcp.server.stdio import stdio_server

from api.mcp.registry import Caller
from api.mcp.server import finish, server_for
from config.management.base import user_of
from language.errors import PalaceError
from palace.sdk.operations import account_of
from palace.sdk.process import bring_tables_up_to_date


class Command(BaseCommand):
    help = "Serve the palace to an assistant by MCP on standard input and output."
    # Standard output carries the protocol, so checks report to the log.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--owner",
            default="",
            metavar="NAME_OR_EMAIL",
            help="Whose palaces; without it this machine's owner's.",
        )
        parser.add_argument(
            "--user-id", metavar="NAME", help="Only the palace that the owner calls so."
        )

    def handle(self, *, owner: str, user_id: str | None, **options: Any) -> None:
        if user_id is not None and not user_id.strip():
            raise CommandError("--user-id is blank; leave it out for the owner's own palace.")
        try:
            bring_tables_up_to_date()
            caller = Caller.at_home(_owner(owner), user_id)
        except PalaceError as error:
            raise CommandError(str(error)) from error
        try:
            anyio.run(_serve, caller)
        finally:
            # Finish running calls, which may be writes, before the services stop.
            finish()


def _owner(name: str) -> User:
    return user_of(name) if name else account_of(None)


async def _serve(caller: Caller) -> None:
    server = server_for(lambda _: caller)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())

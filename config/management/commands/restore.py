"""`manage.py restore`: replace all data by a backup."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from config import preconditions
from config.audit import audit
from config.backup import BackupError, server_of
from config.backup.dump import passphrase_from
from config.backup.restore import finish, restore
from config.management.base import LociCommand
from config.management.commands.audit import in_words
from language.errors import EmbeddingMismatch, WorkingMemoryAway
from palace.models import Palace
from palace.storage.indexing import spaces


class Command(LociCommand):
    help = "Put a backup back, into a database that holds nothing, and audit what came of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "--into-empty",
            action="store_true",
            help="Refuse a database that holds anything (the default).",
        )
        parser.add_argument(
            "--replace", action="store_true", help="Delete all that the database holds; with --yes."
        )
        parser.add_argument("--yes", action="store_true", help="Confirms --replace.")
        parser.add_argument(
            "--as-saved",
            action="store_true",
            help="Leave the tables as an older Loci had them, to go back to that one; no audit.",
        )
        parser.add_argument("--passphrase-file", type=Path, metavar="FILE")

    def handle(self, *, file: Path, replace: bool, **options: Any) -> None:
        if replace and options["into_empty"]:
            raise CommandError("Choose one of --into-empty and --replace.")
        if replace and not options["yes"]:
            raise CommandError("--replace deletes all that the database holds. Add --yes.")
        embedded = settings.USES_EMBEDDED_SERVICES
        try:
            with preconditions.only_one(settings.EMBEDDED.home, "") if embedded else nullcontext():
                passphrase = passphrase_from(options["passphrase_file"])
                server = server_of(connection.settings_dict)
                restore(server, file, passphrase=passphrase, replace=replace, say=self.stdout.write)
        except (BackupError, preconditions.CannotStart) as error:
            raise CommandError(f"{error}") from error
        except (WorkingMemoryAway, redis.RedisError) as error:
            raise CommandError(
                "The database is restored, but Redis does not answer, so ledgers and tasks of "
                "before are still there. Start Redis and restore again with --replace --yes."
            ) from error
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}.") from error
        if options["as_saved"]:
            finish()
            self.stdout.write("Restored as it was saved. Start the Loci that it is for.")
            return
        self.stdout.write("Bringing the tables up to date ...")
        call_command("migrate", verbosity=0)
        finish()
        self._report()

    def _report(self) -> None:
        audited = audit(Palace.objects.order_by("pk").select_related("owner"), everything=True)
        for line in in_words(audited):
            self.stdout.write(line)
        try:
            spaces.verify()
        except EmbeddingMismatch as error:
            self.stdout.write(str(error))
        if audited.wrong:
            raise SystemExit(1)

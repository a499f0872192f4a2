"""`manage.py backup`: write all data to one file."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection

from config.backup import BackupError, server_of
from config.backup.dump import Backup, back_up, keep_newest, new_name, passphrase_from
from config.backup.restore import restores_whole
from config.management.base import LociCommand


class Command(LociCommand):
    help = (
        f"Write a backup of everything, while Loci runs. `{settings.MANAGE} restore` puts it back."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
        parser.add_argument(
            "--to", type=Path, metavar="FOLDER", help="Write a file named by the time into it."
        )
        parser.add_argument(
            "--keep", type=int, metavar="N", help="With --to: delete all but the newest N there."
        )
        parser.add_argument(
            "--passphrase-file",
            type=Path,
            metavar="FILE",
            help="Encrypt with what is in it; else with LOCI_BACKUP_PASSPHRASE, if it is set.",
        )
        parser.add_argument(
            "--with-secrets",
            action="store_true",
            help="Add the signing key even without a passphrase.",
        )
        parser.add_argument(
            "--drill",
            type=Path,
            metavar="FILE",
            help="Write nothing; restore this backup into a temporary place, audit it, remove it.",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *, drill: Path | None, **options: Any) -> None:
        try:
            passphrase = passphrase_from(options["passphrase_file"])
            if drill is not None:
                self._drill(drill.absolute(), passphrase, as_json=options["json"])
            else:
                self._back_up(passphrase, **options)
        except BackupError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            to = options["file"] or options["to"]
            said = f"The backup cannot be written to {to}: {error.strerror}. Name another place."
            raise CommandError(said) from error

    def _back_up(
        self,
        passphrase: str,
        *,
        file: Path | None,
        to: Path | None,
        keep: int | None,
        **options: Any,
    ) -> None:
        if (file is None) == (to is None):
            raise CommandError("Name a FILE, or a folder with --to.")
        if keep is not None and (to is None or keep < 1):
            raise CommandError("--keep is for --to, and at least 1.")
        if file is not None and file.exists():
            raise CommandError(f"{file} is there already; name another.")
        self._report(
            back_up(
                server_of(connection.settings_dict),
                file or new_name(to or Path()),
                passphrase=passphrase,
                with_secrets=options["with_secrets"],
            ),
            as_json=options["json"],
        )
        if to is not None and keep is not None:
            for old in keep_newest(to, keep):
                (self.stderr if options["json"] else self.stdout).write(f"Deleted {old}.")

    def _drill(self, file: Path, passphrase: str, *, as_json: bool) -> None:
        self.stderr.write("Restoring it in a temporary place ...")
        if not restores_whole(file, passphrase):
            raise CommandError(f"The drill failed: {file} cannot be restored, or is not whole.")
        said = f"The drill succeeded: {file} can be restored, and is whole."
        self.stdout.write(json.dumps({"file": str(file), "whole": True}) if as_json else said)

    def _report(self, done: Backup, *, as_json: bool) -> None:
        if as_json:
            made = {"file": str(done.file), "bytes": done.size, "rows": done.rows}
            self.stdout.write(json.dumps(made | {"notes": list(done.notes)}))
            return
        self.stdout.write(f"{done.file}: {done.size:,} bytes, {done.rows:,} rows.")
        for note in done.notes:
            self.stdout.write(note)

"""`manage.py export_palace OUT.zip`: a palace with every word of it, as one file."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from tqdm import tqdm

from config.management.base import PalaceCommand, add_user_argument, palace_of
from palace.models import Palace
from palace.transfer.export import stream


class Command(PalaceCommand):
    help = (
        f"Write a palace into a zip, as {settings.DOCS_PAGE.format('export-format')} describes it: "
        "for another Loci, for programs and for people. Importing it puts it back."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="OUT.zip")
        add_user_argument(parser)
        parser.add_argument(
            "--overwrite", action="store_true", help="Replace the file if it is there."
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(
        self, *, file: Path, user: str, subject: str, overwrite: bool, **options: Any
    ) -> None:
        palace = palace_of(user, subject)
        if file.exists() and not overwrite:
            raise CommandError(f"{file} is there already; name another, or add --overwrite.")
        try:
            size = _write(palace, file)
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
        as_json = json.dumps({"file": str(file), "bytes": size})
        self.stdout.write(as_json if options["json"] else f"{file}: {size:,} bytes.")


def _write(palace: Palace, file: Path) -> int:
    """Under its name once it is whole: what was cut off is not to be taken for an export."""
    # A name of its own, as another export may be writing to the same file; only we may read it.
    handle, name = mkstemp(prefix=f"{file.name}.", suffix=".part", dir=file.parent)
    unfinished = Path(name)
    try:
        with (
            open(handle, "wb") as out,  # noqa: PTH123 - a handle has no path.
            tqdm(desc="Exporting", unit="B", unit_scale=True, leave=False, disable=None) as bar,
        ):
            for piece in stream(palace):
                out.write(piece)
                bar.update(len(piece))
        size = unfinished.stat().st_size
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
    return size

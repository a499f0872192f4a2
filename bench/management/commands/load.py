"""`manage.py load`: what Loci does below and above what its machine can do."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bench.fire.installation import NotStarted
from bench.load.run import load
from bench.logs import Log


class Command(BaseCommand):
    requires_system_checks = ()
    help = (
        "Start a Loci in a folder of its own, find out how many mixed requests a second it can "
        "answer, then send 80 % and 200 % of that. One JSON line on standard output, which the "
        "log keeps. `make load` installs the load tool first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--minutes", type=float, default=2, help="Of both loads together (2).")
        parser.add_argument("--locust", type=Path, help="Unless given, that of `make load`.")
        parser.add_argument("--log", type=Path, help="Unless given, data/load/runs.jsonl.")
        parser.add_argument("--keep", action="store_true", help="Keep what Loci printed.")

    def handle(self, **options: Any) -> None:
        if not options["minutes"] > 0:
            raise CommandError("--minutes is a number above 0.")
        locust = options["locust"] or settings.BASE_DIR / ".loci" / "load" / "bin" / "locust"
        if not locust.is_file():
            raise CommandError(f"There is no {locust}. `make load` installs it.")
        # Not in TMPDIR: a socket's path has to be short.
        folder = Path(tempfile.mkdtemp(prefix="loci-load-", dir="/tmp"))
        try:
            record = load(folder, locust, minutes=options["minutes"], say=self._say)
        except (NotStarted, subprocess.CalledProcessError) as error:
            raise CommandError(f"{error} What was printed: {_end_of(folder)}") from error
        finally:
            if options["keep"]:
                self._say(f"What Loci printed and kept is in {folder}.")
            else:
                shutil.rmtree(folder, ignore_errors=True)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        line = {"at": at, "version": settings.VERSION, "minutes": options["minutes"], **record}
        Log(options["log"] or settings.BASE_DIR / "data" / "load" / "runs.jsonl").append(line)
        self.stdout.write(json.dumps(line))

    def _say(self, line: str) -> None:
        self.stderr.write(line, style_func=str)


def _end_of(folder: Path) -> str:
    log = folder / "locust.log"
    return log.read_text(errors="replace")[-1500:] if log.exists() else "nothing."

"""What the benchmark commands have in common."""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from argparse import ArgumentParser
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.datasets.base import Dataset
from bench.runs import Run
from bench.schema import own_schema


class BenchmarkCommand(BaseCommand):
    """Conversations in, questions asked, one JSON line on standard output."""

    help = "Measure recall. Progress goes to standard error, one JSON line to standard output."

    @staticmethod
    @abstractmethod
    def load(path: Path) -> Dataset:
        """Read the data set at `path`, a file or a folder."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("step", choices=["full"], help="full: everything, in order.")
        parser.add_argument(
            "--data", type=Path, required=True, help="The data set's file or folder."
        )
        parser.add_argument("--limit", type=int, help="Only the first so many cases.")
        parser.add_argument("--recipe", default="default", help="A recipe of recall.")
        parser.add_argument(
            "--run-id", type=_run_id, default="run", help="Names the run and its schema."
        )
        parser.add_argument("--keep", action="store_true", help="Keep what was taken in.")

    def handle(
        self,
        *,
        data: Path,
        limit: int | None,
        recipe: str,
        run_id: str,
        keep: bool,
        **options: Any,
    ) -> None:
        if not data.exists():
            raise CommandError(f"{data} does not exist.")
        dataset, run, sha256 = self.load(data), Run(recipe), sha256_of(data)
        with own_schema(f"bench_{dataset.name}_{run_id}", keep=keep, data=sha256):
            for case in islice(dataset.cases, limit):
                run.ingest(case)
                run.ask(case)
        head = {"dataset": dataset.name, "sha256": sha256}
        body = {"skipped": dict(dataset.skipped), **run.report()}
        self.stdout.write(json.dumps({**head, **body}))


def _run_id(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9_]{1,40}", text):
        raise CommandError("A run's id is made of small letters, digits and _, at most 40.")
    return text


def sha256_of(path: Path) -> str:
    """Of a file's bytes; of a folder, of its files' names and bytes in order."""
    digest = hashlib.sha256()
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        if path.is_dir():
            digest.update(str(file.relative_to(path)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()

"""Learn to read facts from messages whose facts are marked, and measure it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.corpus import CORPUS, read_people
from bench.datasets import BadData
from bench.reader.examples import is_held_out, of_people, of_statements, read_statements, some

MISSING = (
    "JAX is missing, with which the reader learns. Install what it needs beside the rest: "
    "pip install --no-deps --require-hashes -r requirements-training.lock"
)


class Command(BaseCommand):
    help = (
        "Learn to read facts from the statements in bench/statements, and print how well those are "
        "read that were left out, a tenth. About ten minutes on a core."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--epochs", type=int, default=10, help="How often a message is seen.")
        parser.add_argument("--share", type=float, default=1, help="Of the statements learnt from.")
        parser.add_argument(
            "--corpus", action="store_true", help="Learn from the people of `train` as well."
        )

    def handle(self, *, epochs: int, share: float, corpus: bool, **_options: Any) -> None:
        if epochs < 1 or not 0 < share <= 1:
            raise CommandError("--epochs is at least 1; --share is above 0 and at most 1.")
        try:
            # JAX is in an extra of its own.
            from bench.reader.training import Trial  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name not in ("jax", "optax"):
                raise
            raise CommandError(MISSING) from None
        try:
            marked = list(of_statements(read_statements()))
            learnt = some([each for each in marked if not is_held_out(each.text)], share)
            if corpus:
                learnt += of_people(read_people(CORPUS / "train"))
        except BadData as error:
            raise CommandError(str(error)) from None
        trial = Trial(learnt, [each for each in marked if is_held_out(each.text)])
        report = trial.run(epochs, lambda epoch, loss: self.stderr.write(f"{epoch}: {loss:.3f}"))
        self.stdout.write(json.dumps(report, indent=1))

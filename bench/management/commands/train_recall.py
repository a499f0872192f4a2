"""Learn the question's adapter and the recipes' weights from questions with known answers."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import CommandError

from bench.datasets.base import BadData
from bench.recall_training import OF_MEANING, SEED, Learnt, figures, learn_adapter, learn_weights
from bench.runs import UnrestrictedCommand
from bench.training_sets import SETS, Material, add_sets, gather, named_sets
from palace.recall import LEARNT_FOLDER


class Command(UnrestrictedCommand):
    help = (
        "Learn the weights of recall from data sets whose answers are known. Figures are of people "
        "left out of the fit, and of unseen data sets; what is written is fitted on all people."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_sets(parser)
        parser.add_argument(
            "--unseen",
            action="append",
            choices=SETS,
            default=[],
            metavar="SET",
            help="A data set to measure and not to learn from; may be given several times.",
        )
        parser.add_argument(
            "--check", action="store_true", help="Print the figures; write nothing."
        )

    def handle(self, *, check: bool, unseen: Sequence[str], **options: Any) -> None:
        try:
            material = gather(named_sets(options), unseen)
        except BadData as error:
            raise CommandError(str(error)) from None
        report = {
            "seed": SEED,
            "data": material.checksums,
            "questions": material.counts,
            "unseen": material.checksums_of_unseen,
            "of_people_left_out": material.cross_validated(),
            "of_people_left_out_by_words": material.cross_validated(leave_out=OF_MEANING),
        }
        if not check:
            self._write(material, report)
        self.stdout.write(json.dumps(report))

    def _write(self, material: Material, report: dict[str, Any]) -> None:
        LEARNT_FOLDER.mkdir(exist_ok=True)
        turn = learn_adapter(material.asked)
        np.save(LEARNT_FOLDER / "all-MiniLM-L6-v2.npy", turn.astype(np.float16))
        for name, leave_out, key in (
            ("default", (), "of_people_left_out"),
            ("by-words", OF_MEANING, "of_people_left_out_by_words"),
        ):
            learnt = learn_weights(material.examples, material.names, leave_out=leave_out)
            of_unseen = material.figures_of_unseen(learnt)
            provenance = {k: report[k] for k in ("seed", "data", "unseen", "questions")} | {
                "figures_of_people_left_out": report[key],
                "figures_of_unseen": of_unseen,
            }
            _save(LEARNT_FOLDER / f"{name}.json", learnt, provenance)
            report[name] = of_unseen | figures(
                (each, learnt.score(each, material.names)) for each in material.examples
            )


def _save(path: Path, learnt: Learnt, provenance: dict[str, Any]) -> None:
    content = {"learnt_from": provenance, "weights": learnt.weights, "more": learnt.more}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

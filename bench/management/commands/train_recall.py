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
from bench.recall_training import (
    ADAPTED,
    OF_MEANING,
    SEED,
    Learnt,
    figures,
    learn_adapter,
    learn_weights,
)
from bench.runs import UnrestrictedCommand
from bench.training_sets import SETS, Material, add_sets, gather, named_sets
from llm.embedding import deployment_model
from palace.recall import LEARNT_FOLDER, MINILM, trained_embedder


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
        model = deployment_model()
        embedder = trained_embedder(model.provider, model.name)
        if not embedder:
            raise CommandError(f"Recall has no parameters of its own for {model.name}.")
        try:
            material = gather(named_sets(options), embedder, unseen)
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
            self._write(material, report, embedder)
        self.stdout.write(json.dumps(report))

    def _write(self, material: Material, report: dict[str, Any], embedder: str) -> None:
        LEARNT_FOLDER.mkdir(exist_ok=True)
        if embedder in ADAPTED:
            turn = learn_adapter(material.asked, embedder)
            np.save(LEARNT_FOLDER / f"{embedder}.npy", turn.astype(np.float16))
        for name, leave_out, key in (
            (embedder, (), "of_people_left_out"),
            ("by-words", OF_MEANING, "of_people_left_out_by_words"),
        ):
            if name == "by-words" and embedder != MINILM:
                continue
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

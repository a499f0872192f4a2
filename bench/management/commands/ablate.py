"""What each signal of recall gives, on each data set."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from bench import stage_ablation
from bench.datasets.base import BadData
from bench.recall_training import Learnt, figures
from bench.runs import UnrestrictedCommand
from bench.training_sets import Material, add_sets, gather, named_sets, taken_in
from palace.errors import UnknownRecipe
from palace.recall.recipes import Recipe, recipe_named

Figures = dict[str, dict[str, float]]


class Command(UnrestrictedCommand):
    help = (
        "Take each signal out of a recipe in turn and print what is lost, in points of a hundred. "
        "The table goes to standard error, one JSON line to standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_sets(parser)
        parser.add_argument("--recipe", default="default", help="A recipe of recall.")
        parser.add_argument(
            "--refit",
            action="store_true",
            help="Fit the weights again without the signal, and ask people left out of the fit.",
        )
        parser.add_argument(
            "--features", action="store_true", help="Each feature by itself, not whole signals."
        )

        parser.add_argument(
            "--stages",
            action="store_true",
            help="Whole recalls without each stage, with their time, in a run that --run-id names.",
        )
        parser.add_argument("--run-id", help="For --stages: as the ingest step was given.")
        parser.add_argument(
            "--write", action="store_true", help="With --stages: keep what the settings page shows."
        )

    def handle(
        self,
        *,
        recipe: str,
        refit: bool,
        features: bool,
        stages: bool,
        write: bool,
        run_id: str | None,
        **options: Any,
    ) -> None:
        if stages:
            self._by_stages(options, run_id, write=write)
            return
        try:
            chosen = recipe_named(recipe)
            material = gather(named_sets(options))
        except (BadData, UnknownRecipe) as error:
            raise CommandError(str(error)) from None
        whole = _figures(material, chosen, (), refit=refit)
        self._row("all signals", whole, signed=False)
        lost: dict[str, Figures] = {}
        for part in _parts(chosen, features=features):
            lost[part] = _minus(_figures(material, chosen, [part], refit=refit), whole)
            self._row(f"without {part}", lost[part], signed=True)
        head = {"recipe": recipe, "refit": refit, "data": dict(material.checksums)}
        self.stdout.write(json.dumps({**head, "all": whole, "without": lost}))

    def _by_stages(self, options: dict[str, Any], run_id: str | None, *, write: bool) -> None:
        try:
            [(name, path)] = named_sets(options).items()
            with taken_in(name, path, run_id) as cases:
                found = stage_ablation.measure(cases)
        except ValueError:
            raise CommandError("Name one data set for --stages.") from None
        except BadData as error:
            raise CommandError(str(error)) from None
        for label, row in found.items():
            cells = "  ".join(f"{key} {value}" for key, value in row.items())
            self.stderr.write(f"{label:12} {cells}")
        if write:
            stage_ablation.write(found)
        self.stdout.write(json.dumps({"dataset": name, "run_id": run_id, "stages": found}))

    def _row(self, label: str, rows: Figures, *, signed: bool) -> None:
        cells = [
            f"{name} {100 * value:{'+' if signed else ''}.1f}"
            for by_metric in rows.values()
            for name, value in by_metric.items()
        ]
        self.stderr.write(f"{label:28} " + "  ".join(cells))


def _parts(recipe: Recipe, *, features: bool) -> list[str]:
    names = list(recipe.weights)
    return names if features else list(dict.fromkeys(name.partition(".")[0] for name in names))


def _figures(material: Material, recipe: Recipe, without: Sequence[str], *, refit: bool) -> Figures:
    left = recipe.without(without)
    if refit:
        gone = [name for name in material.names if name not in left.weights]
        return material.cross_validated(leave_out=gone)
    learnt = Learnt(left.weights, left.more)
    return figures((each, learnt.score(each, material.names)) for each in material.examples)


def _minus(less: Figures, whole: Figures) -> Figures:
    return {
        dataset: {name: round(value - whole[dataset][name], 4) for name, value in rows.items()}
        for dataset, rows in less.items()
    }

"""What each signal and each stage of recall gives, on each data set: whole recalls with it and
without.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import mean, median
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from bench.datasets import BadData, Case, Question
from bench.management.commands.train_recall import Material, add_sets, gather, named_sets, taken_in
from bench.metrics import recall_at
from bench.recall_training import Learnt, figures
from bench.runs import UnrestrictedCommand, palace_of, prepare
from language.errors import UnknownRecipe
from palace.models import Palace
from palace.recall import STAGES, RecallRequest, RecipeGiven, recall, recipe_given
from palace.recall.recipes import Recipe, recipe_named
from settings_app.memory_views import MEASURED

TOP_K, BUDGET_TOKENS = 10, 1024
# A model's calls are not measured: they take as long as the model does.
_CALLS_A_MODEL = ("rewrite", "rerank")
WHOLE = "all"


def variants() -> dict[str, RecipeGiven]:
    """The whole recipe, and the recipe without each stage that can be off, by name."""
    off: dict[str, RecipeGiven] = {
        stage.name: [{"stage": stage.name, "on": False}]
        for stage in STAGES.values()
        if stage.switch and stage.name not in _CALLS_A_MODEL
    }
    return {WHOLE: [], **off}


def measure_stages(cases: Sequence[Case]) -> dict[str, Any]:
    """By variant: turn_recall@10, the share of refused questions that have no answer, and ms of
    processor time in this process, which other programs on the machine do not change.

    All variants of a question are asked one after the other, each time another one first, so that
    what else the machine does affects them alike.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    refused: defaultdict[str, list[float]] = defaultdict(list)
    taken: defaultdict[str, list[float]] = defaultdict(list)
    recipes = variants()
    for at, (palace, question) in enumerate(_questions(cases)):
        names = list(recipes)
        names = names[at % len(names) :] + names[: at % len(names)]
        for name in names:
            ids, seconds = _asked(palace, question, recipes[name])
            taken[name].append(seconds * 1000)
            if question.gold_turns:
                found[name].append(recall_at(ids, question.gold_turns, TOP_K))
            elif question.unanswerable:
                refused[name].append(float(not ids))
    return {
        name: {
            "turn_recall@10": round(mean(found[name]), 4),
            "refused": round(mean(refused[name]), 4) if refused[name] else None,
            "ms": round(median(taken[name]), 2),
            "ms_less": round(
                median(b - a for a, b in zip(taken[name], taken[WHOLE], strict=True)), 2
            ),
            "questions": len(taken[name]),
        }
        for name in recipes
    }


def _questions(cases: Sequence[Case]) -> Iterator[tuple[Palace, Question]]:
    for case in tqdm(cases, desc="asked", unit="case", disable=None):
        palace = palace_of(case)
        prepare(palace, "default")
        if case.questions:  # What is read once, such as the index, is nobody's cost.
            _asked(palace, case.questions[0], "default")
        yield from ((palace, question) for question in case.questions)


def _asked(palace: Palace, question: Question, recipe: RecipeGiven) -> tuple[list[str], float]:
    """The messages found, as `conversation/message`, and the processor time in seconds."""
    started = time.process_time()
    hits = recall(
        palace,
        RecallRequest(
            question.text,
            top_k=TOP_K,
            now=question.now,
            recipe=recipe,
            budget_tokens=BUDGET_TOKENS,
            rerank=False,
            with_facts=True,
            store_trace=False,
        ),
    ).hits
    seconds = time.process_time() - started
    return [f"{hit.drawer.conversation}/{hit.drawer.external_id}" for hit in hits], seconds


def store_stages(figures: dict[str, Any]) -> None:
    """Store what the settings page shows: each stage, with what it costs and gives."""
    whole = figures[WHOLE]
    default = recipe_given("default")
    rows = [
        {
            "name": stage.name,
            "help": stage.help,
            "on": not stage.switch or bool(getattr(default, stage.switch)),
            **_difference(figures.get(stage.name), whole),
        }
        for stage in STAGES.values()
    ]
    content = {"questions": whole["questions"], "ms": whole["ms"], "stages": rows}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    MEASURED.write_text(text + "\n", encoding="utf-8")


def _difference(without: dict[str, Any] | None, whole: dict[str, Any]) -> dict[str, float]:
    if without is None:
        return {}
    points = 100 * (whole["turn_recall@10"] - without["turn_recall@10"])
    return {"ms": without["ms_less"], "points": round(points, 1)}


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
                found = measure_stages(cases)
        except ValueError:
            raise CommandError("Name one data set for --stages.") from None
        except BadData as error:
            raise CommandError(str(error)) from None
        for label, row in found.items():
            cells = "  ".join(f"{key} {value}" for key, value in row.items())
            self.stderr.write(f"{label:12} {cells}")
        if write:
            store_stages(found)
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

"""`manage.py my_eval`: how well recall does on the questions whose right drawers were named."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from config.management.base import PalaceCommand, add_user_argument, palace_of
from language.errors import UnknownRecipe
from palace.models import RecallCase
from palace.recall.evaluation import (
    DEPTH,
    MEASURES,
    Trial,
    failures,
    scores,
    try_case,
    without_model,
)
from palace.recall.recipes import recipe_named

# Of a question and of what stands in a drawer, so much is printed.
SHOWN = 100

NO_CASES = (
    "There are no cases yet. Search your palace, press “Why these results?”, and say which drawer "
    "should have been found."
)


class Command(PalaceCommand):
    help = "Score recipes on your own cases: searches whose right drawers you have named."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_user_argument(parser)
        parser.add_argument(
            "--recipe",
            action="append",
            dest="recipes",
            metavar="NAME",
            help="May be given more than once; without it all that ask no model.",
        )
        parser.add_argument("--json", action="store_true", help="One line, for programs.")

    def handle(self, *, user: str, subject: str, recipes: list[str] | None, **options: Any) -> None:
        palace = palace_of(user, subject)
        names = list(dict.fromkeys(recipes or without_model()))
        try:
            for name in names:
                recipe_named(name)
        except UnknownRecipe as error:
            raise CommandError(str(error)) from error
        cases = list(
            RecallCase.objects.within(palace).select_related("palace").order_by("created_at", "pk")
        )
        tried = {
            name: [try_case(case, name) for case in tqdm(cases, desc=name, disable=None)]
            for name in names
        }
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(cases, tried), ensure_ascii=False))
        elif cases:
            self._show(cases, tried)
        else:
            self.stdout.write(NO_CASES)

    def _show(self, cases: Sequence[RecallCase], tried: Mapping[str, Sequence[Trial]]) -> None:
        counted, trashed = _counts(tried)
        self.stdout.write(f"{counted} of {len(cases)} cases count.")
        if trashed:
            are = "drawer is" if trashed == 1 else "drawers are"
            self.stdout.write(f"{trashed} expected {are} in the trash and left out.")
        if not counted:
            return
        width = max(map(len, tried)) + 2
        self.stdout.write("".ljust(width) + "".join(name.rjust(11) for name in MEASURES))
        for name, trials in tried.items():
            figures = scores(trials)
            line = "".join(f"{figures[measure]:11.3f}" for measure in MEASURES)
            self.stdout.write(name.ljust(width) + line)
        for name, trials in tried.items():
            self._show_failures(name, failures(trials))

    def _show_failures(self, recipe: str, failed: Sequence[Trial]) -> None:
        if not failed:
            self.stdout.write(self.style.SUCCESS(f"\n{recipe}: all came among the first five."))
            return
        self.stdout.write(self.style.MIGRATE_HEADING(f"\n{recipe}: not among the first five"))
        for trial in failed:
            self.stdout.write(f"  {_short(trial.case.query)}  (asked {trial.case.day})")
            for drawer in trial.missed:
                place = trial.place(drawer)
                came = f"came in place {place}" if place else f"not among the first {DEPTH}"
                self.stdout.write(f"    {drawer.pointer}  {came}: “{_short(drawer.text)}”")
            for note in trial.notes:
                self.stdout.write(self.style.WARNING(f"    {note}"))


def _counts(tried: Mapping[str, Sequence[Trial]]) -> tuple[int, int]:
    """How many cases count, and how many expected drawers are in the trash."""
    trials = next(iter(tried.values()))
    return sum(t.is_scored for t in trials), sum(t.trashed for t in trials)


def _as_json(cases: Sequence[RecallCase], tried: Mapping[str, Sequence[Trial]]) -> dict[str, Any]:
    counted, trashed = _counts(tried)
    return {
        "cases": len(cases),
        "scored": counted,
        "skipped": {"nothing left to find": len(cases) - counted},
        "drawers_in_trash": trashed,
        "recipes": {
            name: {"metrics": scores(trials), "failed": [_failed(t) for t in failures(trials)]}
            for name, trials in tried.items()
        },
    }


def _failed(trial: Trial) -> dict[str, Any]:
    return {
        "case": str(trial.case.uuid),
        "query": trial.case.query,
        "day": trial.case.day.isoformat(),
        "missed": [
            {"pointer": str(drawer.pointer), "place": trial.place(drawer)}
            for drawer in trial.missed
        ],
        "notes": list(trial.notes),
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"

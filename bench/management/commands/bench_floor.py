"""`manage.py bench_floor`: how close a palace must come to a question, fitted and measured."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from bench import floor_regression
from bench.datasets import BadData
from bench.floor_questions import (
    OFF_TOPIC_FILE,
    PALACES,
    measure,
    observe,
    read_off_topic,
    read_people,
    take_in,
)
from bench.floor_regression import ANSWERABLE, NEAR_MISS, OFF_TOPIC, Fitted
from bench.logs import sha256_of
from bench.management.commands.train_recall import SETS, add_sets, taken_in
from bench.runs import UnrestrictedCommand, alone_in, drop_schema, own_schema
from llm.embedding import deployment_model
from palace.recall import trained_embedder
from palace.recall.relevance import FLOOR_PATH, load_floor_weights

SCHEMA = "bench_floor"
KINDS = (OFF_TOPIC, NEAR_MISS, ANSWERABLE)
LINE = "{:>9}" + "{:>14}" * len(KINDS)


class Command(UnrestrictedCommand):
    help = (
        "Ask made-up questions of made-up palaces, fit recall's floor to them, and show what each "
        "threshold would refuse. With data sets: what the floor in use refuses there. Tables on "
        "standard error, one JSON line on standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_sets(parser)
        parser.add_argument(
            "--run-id", help="The run that took the data sets in, as their ingest step was given."
        )
        parser.add_argument(
            "--write", action="store_true", help="Keep the models and the observations."
        )
        parser.add_argument(
            "--kept", action="store_true", help="Fit to the observations kept; ask nothing."
        )

    def handle(self, *, write: bool, kept: bool, run_id: str | None, **options: Any) -> None:
        paths = {name: path for name in SETS if (path := options.get(name))}
        try:
            report = _fitted(write=write, from_kept=kept)
            for name, fitted in report.pop("fitted").items():
                self.stderr.write(f"\n{name}\n" + "\n".join(_table(fitted)))
            report["data"] = {name: _measured(name, path, run_id) for name, path in paths.items()}
        except BadData as error:
            raise CommandError(str(error)) from None
        self.stdout.write(json.dumps(report))


def _fitted(*, write: bool, from_kept: bool) -> dict[str, Any]:
    facts: Mapping[str, int] = {}
    model = deployment_model()
    embedder = trained_embedder(model.provider, model.name)
    if embedder not in floor_regression.FITTED:
        raise CommandError(f"Recall has no floor of its own for {model.name}.")
    if from_kept:
        observations = floor_regression.read(embedder)
    else:
        observations, facts = _observed()
    models = floor_regression.fit_all(observations, embedder)
    fitted_on = {path.name: sha256_of(path) for path in (PALACES, OFF_TOPIC_FILE)}
    if write:
        floor_regression.write(observations, embedder)
        fitted = {name: model.model for name, model in models.items()}
        content = {"fitted_on": fitted_on, "models": load_floor_weights()["models"] | fitted}
        FLOOR_PATH.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        load_floor_weights.cache_clear()
    return {
        "fitted_on": fitted_on,
        "questions": {kind: sum(o.kind == kind for o in observations) for kind in KINDS},
        "models": {name: {**m.model, "curve": m.curve} for name, m in models.items()},
        "facts": dict(facts),
        "fitted": models,
    }


def _observed() -> tuple[list[floor_regression.Observation], Mapping[str, int]]:
    people = read_people()
    with alone_in(SCHEMA):
        drop_schema(SCHEMA)
        with own_schema(SCHEMA, keep=False):
            return observe(people, take_in(people), list(read_off_topic()))


def _measured(name: str, path: Path, run_id: str | None) -> dict[str, Any]:
    """Measure what the current floor rejects in a data set.

    Raises:
        BadData: the data set has not been ingested.
    """
    with taken_in(name, path, run_id) as cases:
        return measure(cases, list(read_off_topic()))


def _table(fitted: Fitted) -> Iterator[str]:
    """What each threshold refuses of each kind; the chosen one is marked."""
    yield LINE.format("threshold", *KINDS)
    for row in fitted.curve:
        shares = (f"{row[kind]:.1%}" for kind in KINDS)
        mark = " *" if row["least"] == fitted.least else ""
        yield LINE.format(f"{row['least']:.2f}", *shares) + mark

"""`manage.py bench_embedders`: what local embedding models find, and what they cost."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.corpus import CORPUS
from bench.datasets import beam, locibench, locomo
from bench.datasets.base import BadData, Case
from bench.dense_search import compare, figures
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME, MULTILINGUAL_NAME
from llm.errors import EmbedderMisconfigured

LOADERS = {"locomo": locomo.load, "beam": beam.load, "locibench": locibench.load}


class Command(BaseCommand):
    help = (
        "Compare local embedding models by plain dense search, one vector a message, with and "
        "without the speaker before the text. Models take turns. One JSON line on standard output."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--models",
            nargs="+",
            choices=LOCAL_MODELS,
            default=[MODEL_NAME, MULTILINGUAL_NAME],
            help="Which; the costs are compared with those of the first.",
        )
        parser.add_argument("--dataset", choices=LOADERS, default="locibench")
        parser.add_argument(
            "--data",
            type=Path,
            nargs="+",
            default=[CORPUS / "train", CORPUS / "dev"],
            help="The data set's files or folders; of locibench the parts train and dev.",
        )

    def handle(self, *, models: list[str], dataset: str, data: list[Path], **options: Any) -> None:
        load = LOADERS[dataset]
        cases: Iterator[Case] = chain.from_iterable(load(path).cases for path in data)
        try:
            compared = compare(cases, models)
        except (BadData, EmbedderMisconfigured) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps({"dataset": dataset, "models": figures(compared)}))

"""`manage.py bench_embedders`: what local embedding models find, and what they cost."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand, CommandError

from bench import corpus
from bench.corpus import CORPUS
from bench.datasets import BadData, Case
from bench.datasets.long_chats import load_beam, load_locomo
from bench.metrics import recall_at
from language.transcripts import Turn
from llm.embedding.local import embedder
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME, MULTILINGUAL_NAME
from llm.errors import EmbedderMisconfigured

LOADERS = {"locomo": load_locomo, "beam": load_beam, "locibench": corpus.load}
DEPTH = 10
# Texts per call, so that models take turns on a machine that slows down.
TURN_TEXTS = 64
FORMS = ("text", "speaker and text")


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


@dataclass(slots=True)
class Model:
    """
    Attributes:
        found: The share of gold messages among the first ten, for each question, by form of the
            messages and language.
    """

    name: str
    seconds: float = 0.0
    tokens: int = 0
    texts: int = 0
    found: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def embed(self, texts: Sequence[str], *, is_question: bool = False) -> np.ndarray:
        started = time.process_time()
        found = embedder(self.name, is_question=is_question)
        vectors, tokens = found.embed(texts, is_question=is_question)
        self.seconds += time.process_time() - started
        self.tokens += tokens
        self.texts += len(texts)
        return vectors


def compare(cases: Iterable[Case], names: Sequence[str]) -> list[Model]:
    """Search each person's messages for the answers to their questions with each model."""
    models = [Model(name) for name in names]
    for model in models:
        for is_question in (False, True):
            embedder(model.name, is_question=is_question).embed(["A text to warm up."])
    for case in cases:
        _search(case, models)
    return models


def _search(case: Case, models: Sequence[Model]) -> None:
    turns = {
        f"{transcript.external_id}/{turn.external_id}": turn
        for transcript in case.transcripts
        for turn in transcript.turns
    }
    questions = [one for one in case.questions if one.gold_turns]
    if not questions:
        return
    keys = list(turns)
    asked = _embedded([one.text for one in questions], models, is_question=True)
    for form in FORMS:
        stated = _embedded([_written(turn, form) for turn in turns.values()], models)
        for model, question_vectors, vectors in zip(models, asked, stated, strict=True):
            for question, cosines in zip(questions, question_vectors @ vectors.T, strict=True):
                best = [keys[place] for place in np.argsort(-cosines, kind="stable")[:DEPTH]]
                share = recall_at(best, question.gold_turns, DEPTH)
                for language in {"all", case.language or "all"}:
                    model.found[form, language].append(share)


def _written(turn: Turn, form: str) -> str:
    return turn.text if form == "text" else f"{turn.speaker or turn.role}: {turn.text}"


def _embedded(
    texts: Sequence[str], models: Sequence[Model], *, is_question: bool = False
) -> list[np.ndarray]:
    """The vectors by each model, computed in turns."""
    parts: list[list[np.ndarray]] = [[] for _ in models]
    for start in range(0, len(texts), TURN_TEXTS):
        part = texts[start : start + TURN_TEXTS]
        for model, done in zip(models, parts, strict=True):
            done.append(model.embed(part, is_question=is_question))
    return [np.concatenate(done) for done in parts]


def figures(models: Sequence[Model]) -> dict[str, dict[str, object]]:
    """By model: `turn@10` by form and language with the number of questions, and the costs."""
    return {model.name: _figures(model, models[0]) for model in models}


def _figures(model: Model, first: Model) -> dict[str, object]:
    languages = sorted(set(chain.from_iterable(key[1:] for key in model.found)))
    return {
        "turn@10": {
            form: {
                language: round(float(np.mean(model.found[form, language])), 3)
                for language in languages
            }
            for form in FORMS
        },
        "questions": {language: len(model.found[FORMS[0], language]) for language in languages},
        "cpu_ms_a_text": round(1000 * model.seconds / model.texts, 2),
        "tokens_a_text": round(model.tokens / model.texts, 1),
        "cpu_of_the_first": round(model.seconds / first.seconds, 2),
    }

"""`manage.py train_recall`: learn the question's adapter and the recipes' weights from questions
with known answers.

Ingested data sets are the training data: their examples, and the folds of cross-validation.
"""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import CommandError
from tqdm import tqdm

from bench import corpus
from bench.datasets import BadData, Case, Dataset, longmemeval
from bench.datasets.long_chats import load_beam, load_locomo
from bench.logs import sha256_of
from bench.recall_training import (
    ADAPTED,
    FOLDS,
    OF_MEANING,
    SEED,
    Example,
    Floats,
    Learnt,
    TrainingQuestion,
    asked,
    examples,
    figures,
    folds,
    learn_adapter,
    learn_weights,
)
from bench.runs import UnrestrictedCommand, own_schema, palace_of, schemas
from llm.embedding import deployment_model
from palace.mining.pipeline import mine_many
from palace.models import Drawer
from palace.recall import LEARNT_FOLDER, MINILM, apply_map, trained_embedder


@dataclass(frozen=True, slots=True)
class Material:
    """
    Attributes:
        asked: The questions to learn from.
        examples: Their examples, by adapters that have not seen the person's questions.
        unseen: Examples of data sets that are only measured, by an adapter learnt from `asked`.
        names: The features, in the order of the examples' columns.
        fold_of: The fold, by data set and person.
        checksums: Checksums of the files learnt from, by data set.
    """

    asked: Sequence[TrainingQuestion]
    examples: Sequence[Example]
    unseen: Sequence[Example]
    names: Sequence[str]
    fold_of: Mapping[tuple[str, str], int]
    checksums: Mapping[str, str]
    checksums_of_unseen: Mapping[str, str]

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(each.dataset for each in (*self.examples, *self.unseen)))

    def cross_validated(self, *, leave_out: Sequence[str] = ()) -> dict[str, dict[str, float]]:
        """Figures of questions by people whom neither adapter nor weights have seen."""

        def scored() -> list[tuple[Example, Floats]]:
            found = []
            for fold in range(FOLDS):
                inside, outside = self._split(fold)
                if inside and outside:
                    learnt = learn_weights(inside, self.names, leave_out=leave_out)
                    found += [(each, learnt.score(each, self.names)) for each in outside]
            return found

        return figures(iter(scored()))

    def figures_of_unseen(self, learnt: Learnt) -> dict[str, dict[str, float]]:
        """Figures of the data sets that nothing was learnt from."""
        return figures((each, learnt.score(each, self.names)) for each in self.unseen)

    def _split(self, fold: int) -> tuple[list[Example], list[Example]]:
        inside: list[Example] = []
        outside: list[Example] = []
        for each in self.examples:
            held_back = self.fold_of[each.dataset, each.person] == fold
            (outside if held_back else inside).append(each)
        return inside, outside


# The language of the default embedder; its vectors of other languages would teach little.
# Data sets in one language do not name it.
LANGUAGES = {MINILM: ("", "en")}
SETS: Mapping[str, Callable[[Path], Dataset]] = {
    "locibench": corpus.load,
    "longmemeval": longmemeval.load,
    "locomo": load_locomo,
    "beam": load_beam,
}


def add_sets(parser: ArgumentParser) -> None:
    """An option for each data set."""
    for name in SETS:
        parser.add_argument(f"--{name}", type=Path, help="The data set's file or folder.")


def named_sets(options: Mapping[str, Path | None]) -> dict[str, Path]:
    """
    Raises:
        BadData: none was named, or one is not there.
    """
    paths = {name: path for name in SETS if (path := options.get(name))}
    if not paths:
        raise BadData("Name at least one data set, for example --locomo locomo10.json.")
    for path in paths.values():
        if not path.exists():
            raise BadData(f"{path} does not exist.")
    return paths


@contextmanager
def taken_in(name: str, path: Path, run_id: str | None) -> Iterator[list[Case]]:
    """The ingested cases of a run, in its schema: the run may have had a limit.

    Raises:
        BadData: there is no such data set, or it was not ingested.
    """
    if not path.exists():
        raise BadData(f"{path} does not exist.")
    schema = f"bench_{name}_{run_id}"
    if schema not in schemas(schema):
        how = f"manage.py {name} ingest --data {path} --run-id {run_id or 'NAME'}"
        raise BadData(f"{path} is not taken in; run `{how}`, and name the same --run-id here.")
    dataset = SETS[name](path)
    with own_schema(schema, keep=True, data=sha256_of(path)):
        yield [case for case in dataset.cases if _holds_anything(case)]


def _holds_anything(case: Case) -> bool:
    return Drawer.objects.within(palace_of(case)).exists()


def gather(
    paths: Mapping[str, Path], embedder: str = MINILM, unseen: Collection[str] = ()
) -> Material:
    """Ingest the data sets that no earlier run has ingested, each in a schema that is kept.

    Args:
        embedder: The active one; only people whose language it reads are learnt from.
        unseen: The data sets of `paths` to measure and not to learn from.

    Raises:
        BadData: a file cannot be used, or all questions to learn from are of one person.
    """
    checksums = {name: sha256_of(path) for name, path in paths.items()}
    schemas = _schemas(checksums, embedder)
    cases = {
        name: [case for case in SETS[name](path).cases if _is_read(case, embedder)]
        for name, path in paths.items()
    }
    questions = _take_in(cases, schemas)
    learning = [each for each in questions if each.dataset not in unseen]
    fold_of = folds(learning)
    if len(set(fold_of.values())) < 2:
        raise BadData("Figures are of people left out: name data of at least two people.")
    by_dataset = _all_examples(cases, schemas, questions, _adapters(learning, fold_of, embedder))
    seen = [each for name in cases if name not in unseen for each in by_dataset[name]]
    return Material(
        learning,
        seen,
        [each for name in cases if name in unseen for each in by_dataset[name]],
        seen[0].names,
        fold_of,
        {name: sha for name, sha in checksums.items() if name not in unseen},
        {name: sha for name, sha in checksums.items() if name in unseen},
    )


def _schemas(checksums: Mapping[str, str], embedder: str) -> dict[str, str]:
    """By data set, the name of the schema that keeps it for this embedder."""
    vectors_of = re.sub(r"\W+", "_", embedder).lower()[:20]
    return {name: f"train_{name}_{sha[:12]}_{vectors_of}" for name, sha in checksums.items()}


def _take_in(
    cases: Mapping[str, Sequence[Case]], schemas: Mapping[str, str]
) -> list[TrainingQuestion]:
    questions: list[TrainingQuestion] = []
    for name, here in cases.items():
        with own_schema(schemas[name], keep=True):
            for case in tqdm(here, desc=f"{name} in", disable=None):
                mine_many(palace_of(case), case.transcripts)
                questions += asked(name, case)
    return questions


def _adapters(
    learning: Sequence[TrainingQuestion], fold_of: Mapping[tuple[str, str], int], embedder: str
) -> Callable[[str, str], Floats]:
    """The adapter for each person of a data set, learnt without their questions.

    People of measured data sets get the one learnt from all questions.
    """
    maps = [
        learn_adapter([q for q in learning if fold_of[q.dataset, q.person] != fold], embedder)
        for fold in tqdm(range(FOLDS), desc="adapters", disable=None)
    ]
    of_all = learn_adapter(learning, embedder)

    def adapter_for(dataset: str, person: str) -> Floats:
        fold = fold_of.get((dataset, person))
        return of_all if fold is None else maps[fold]

    return adapter_for


def _all_examples(
    cases: Mapping[str, Sequence[Case]],
    schemas: Mapping[str, str],
    questions: Sequence[TrainingQuestion],
    adapter_for: Callable[[str, str], Floats],
) -> dict[str, list[Example]]:
    """All examples by data set, in the order of its cases."""
    found: dict[str, list[Example]] = {name: [] for name in cases}
    for name, here in cases.items():
        with own_schema(schemas[name], keep=True):
            for case in tqdm(here, desc=f"{name} features", disable=None):
                own = [q for q in questions if (q.dataset, q.person) == (name, case.id)]
                if own:
                    found[name] += _examples(own, case, adapter_for(name, case.id))
    return found


def _is_read(case: Case, embedder: str) -> bool:
    return embedder not in LANGUAGES or case.language in LANGUAGES[embedder]


def _examples(own: Sequence[TrainingQuestion], case: Case, turn: Floats) -> list[Example]:
    return list(examples(own, palace_of(case), lambda vector: apply_map(vector, turn)))


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

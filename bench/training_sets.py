"""Data sets already taken in, as training data: their examples, and how people are left out."""

from __future__ import annotations

import importlib
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from bench.datasets.base import BadData, Case, Dataset
from bench.logs import sha256_of
from bench.recall_training import FOLDS, figures, folds, learn_adapter, learn_weights
from bench.runs import own_schema, palace_of
from bench.training_examples import Example, Floats, TrainingQuestion, asked, examples
from palace.pipeline import mine_many
from palace.recall import apply_map


@dataclass(frozen=True, slots=True)
class Material:
    """
    Attributes:
        examples: Each question's aim by an adapter that has not seen the person's questions.
        names: Of the features, in the order of the examples' columns.
        fold_of: By data set and person.
    """

    asked: Sequence[TrainingQuestion]
    examples: Sequence[Example]
    names: Sequence[str]
    fold_of: Mapping[tuple[str, str], int]
    checksums: Mapping[str, str]

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(each.dataset for each in self.asked))

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

    def _split(self, fold: int) -> tuple[list[Example], list[Example]]:
        inside: list[Example] = []
        outside: list[Example] = []
        for each in self.examples:
            held_back = self.fold_of[each.dataset, each.person] == fold
            (outside if held_back else inside).append(each)
        return inside, outside


SETS = ("locomo", "beam", "longmemeval")


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


def gather(paths: Mapping[str, Path]) -> Material:
    """Take in what is not there from an earlier time; in schemas of their own, which are kept.

    Raises:
        BadData: a file cannot be used, or all questions are of one person.
    """
    checksums = {name: sha256_of(path) for name, path in paths.items()}
    cases = {name: list(_load(name, path).cases) for name, path in paths.items()}
    questions: list[TrainingQuestion] = []
    for name, here in cases.items():
        with own_schema(_schema(name, checksums[name]), keep=True):
            for case in tqdm(here, desc=f"{name} in", disable=None):
                mine_many(palace_of(case), case.transcripts)
                questions += asked(name, case)
    fold_of = folds(questions)
    if len(set(fold_of.values())) < 2:
        raise BadData("Figures are of people left out: name data of at least two people.")
    turns = [
        learn_adapter([q for q in questions if fold_of[q.dataset, q.person] != fold])
        for fold in tqdm(range(FOLDS), desc="adapters", disable=None)
    ]
    found: list[Example] = []
    for name, here in cases.items():
        with own_schema(_schema(name, checksums[name]), keep=True):
            for case in tqdm(here, desc=f"{name} features", disable=None):
                turn = turns[fold_of[name, case.id]]
                own = [q for q in questions if (q.dataset, q.person) == (name, case.id)]
                found += _examples(own, case, turn)
    return Material(questions, found, found[0].names, fold_of, checksums)


def _examples(own: Sequence[TrainingQuestion], case: Case, turn: Floats) -> list[Example]:
    return list(examples(own, palace_of(case), lambda vector: apply_map(vector, turn)))


def _schema(name: str, sha256: str) -> str:
    """Of one file: another of the same set is taken in beside it."""
    return f"train_{name}_{sha256[:12]}"


def _load(name: str, path: Path) -> Dataset:
    dataset: Dataset = importlib.import_module(f"bench.datasets.{name}").load(path)
    return dataset

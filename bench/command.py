"""The base of the benchmark commands."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from abc import abstractmethod
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import CommandError
from tqdm import tqdm

from bench.datasets import BadData, Case, Dataset
from bench.logs import BadRun, Folder, sha256_of, write_json
from bench.metrics import ingest_report, retrieval_report
from bench.runs import (
    UnrestrictedCommand,
    alone_in,
    ask,
    code_of_recall,
    drop_schema,
    own_schema,
    palace_taken_in,
    schemas,
    take_in,
)
from language.errors import UnknownRecipe
from llm.embedding import deployment_model
from llm.embedding.local_models import DIMENSIONS, MODEL_NAME
from llm.errors import LLMError
from palace.recall.recipes import recipe_named

# Questions of a smoke test, of as few people as possible.
SMOKE_QUESTIONS = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """The command line's options.

    Attributes:
        limit: Only that many cases.
        questions: Only that many questions.
        more: Options of one data set's command.
    """

    step: str
    data: Path | None
    limit: int | None
    questions: int | None
    recipe: str
    run_id: str | None
    out: Path
    keep: bool
    fresh: bool
    more: dict[str, Any]


class BenchmarkCommand(UnrestrictedCommand):
    """Ingest conversations, ask questions, print one JSON line to standard output."""

    help = "Measure recall. Progress goes to standard error, one JSON line to standard output."
    dataset: ClassVar[str]
    steps: ClassVar[dict[str, str]] = {
        "ingest": "take the conversations in, and keep them",
        "retrieve": "ask the questions of what was taken in, and keep it",
        "score-retrieval": "figures, from the log alone",
        "full": "all three, and drop what was taken in",
        "smoke": "full, of ten questions",
        "drop": "drop what a run has taken in; its logs stay",
    }

    @staticmethod
    @abstractmethod
    def load(path: Path) -> Dataset:
        """Read the data set at `path`, a file or a folder."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        steps = "; ".join(f"{step}: {what}" for step, what in self.steps.items())
        add("step", choices=self.steps, help=f"{steps}.")
        add("--data", type=Path, help="The data set's file or folder.")
        add("--limit", type=int, help="Only the first so many cases.")
        add("--recipe", default="default", help="A recipe of recall.")
        add("--run-id", help="Names the run and its schema; else made of recipe and data.")
        add("--out", type=Path, help="Where logs go: OUT/<dataset>/<run id>/. Unless given, data/.")
        add("--keep", action="store_true", help="Keep what full or smoke took in.")
        add("--fresh", action="store_true", help="Throw away what the step made before.")

    def handle(self, *, step: str, **options: Any) -> None:
        wanted = self.wanted(step, options)
        try:
            report = self.step(step)(wanted)
        except (BadData, BadRun, UnknownRecipe, LLMError) as error:
            raise CommandError(str(error)) from None
        except (NotADirectoryError, FileExistsError) as error:
            raise CommandError(f"--out is a folder for logs: {error}.") from None
        self.stdout.write(json.dumps(report))

    def wanted(self, step: str, options: dict[str, Any]) -> Wanted:
        limit, run_id = options.pop("limit", None), options.pop("run_id", None)
        if limit is not None and limit < 1:
            raise CommandError("--limit is a number from 1.")
        if run_id is not None and not re.fullmatch(r"[a-z0-9_]{1,40}", run_id):
            raise CommandError("A run's id is made of small letters, digits and _, at most 40.")
        return Wanted(
            step=step,
            data=options.pop("data", None),
            limit=limit,
            questions=SMOKE_QUESTIONS if step == "smoke" else None,
            recipe=options.pop("recipe", "default"),
            run_id=run_id,
            out=options.pop("out", None) or _logs(),
            keep=options.pop("keep", False),
            fresh=options.pop("fresh", False),
            more=options,
        )

    def step(self, name: str) -> Callable[[Wanted], dict[str, Any]]:
        steps: dict[str, Callable[[Wanted], dict[str, Any]]] = {
            "ingest": self.ingest,
            "retrieve": self.retrieve,
            "score-retrieval": self.score_retrieval,
            "full": self.full,
            "smoke": self.full,
            "drop": self.drop,
        }
        return steps[name]

    def ingest(self, wanted: Wanted) -> dict[str, Any]:
        run = self.run(wanted)
        with self.at_work(run, forget=ALL if wanted.fresh else ()):
            for case in _bar(run.cases, "ingest"):
                take_in(case, run.folder.ingest)
        return {**run.head, "cases": len(run.cases), "ingest": _ingested(run.folder)}

    def retrieve(self, wanted: Wanted) -> dict[str, Any]:
        run = self.run(wanted)
        how = f"manage.py {self.dataset} ingest --data {wanted.data} --run-id {run.id}"
        if run.schema not in schemas(run.schema):
            raise BadRun(f"Run {run.id} has nothing taken in; run `{how}` first.")
        forget = ("retrieval",) if wanted.fresh else ()
        with self.at_work(run, forget=forget):
            done = self.questions_done(run)
            for case in _bar(run.cases, "retrieve"):
                palace = palace_taken_in(case, run.folder.ingest, how)
                for line in ask(case, palace, run.recipe, done):
                    run.folder.retrieval.append(line)
            return self.finished(run)

    def full(self, wanted: Wanted) -> dict[str, Any]:
        run = self.run(wanted)
        forget = ALL if wanted.fresh else ()
        with self.at_work(run, forget=forget, drop=not wanted.keep):
            done = self.questions_done(run)
            for case in _bar(run.cases, wanted.step):
                palace = take_in(case, run.folder.ingest)
                for line in ask(case, palace, run.recipe, done):
                    run.folder.retrieval.append(line)
            return self.finished(run)

    def score_retrieval(self, wanted: Wanted) -> dict[str, Any]:
        folder = self.folder(wanted)
        lines = folder.retrieval.lines()
        made = folder.made_with("retrieval")
        if not (lines and made and folder.made_with("run")):
            raise BadRun(f"{folder.retrieval.path} holds nothing to score; run `retrieve` first.")
        if unasked := made["questions"] - len(lines):
            self.stderr.write(f"{unasked} of {made['questions']} questions are not asked yet.")
        try:
            return self.report(folder)
        except (KeyError, TypeError, ValueError) as error:
            raise BadRun(
                f"{folder.retrieval.path} is not as `retrieve` writes it ({error!r}); have it "
                "written again with --fresh."
            ) from None

    def drop(self, wanted: Wanted) -> dict[str, Any]:
        prefix = f"bench_{self.dataset}_"
        there = [name.removeprefix(prefix) for name in schemas(prefix)]
        named = wanted.run_id
        if named is None and wanted.data is not None and wanted.data.exists():
            named = self.run_id(wanted, sha256_of(wanted.data))
        if named not in there:
            raise BadRun(f"Name a run with --run-id; kept are: {', '.join(there) or 'none'}.")
        with alone_in(f"{prefix}{named}"):
            drop_schema(f"{prefix}{named}")
        return {"dataset": self.dataset, "dropped": named}

    def run(self, wanted: Wanted) -> Run:
        if wanted.data is None:
            raise CommandError(f"{wanted.step} reads a data set: name its file with --data.")
        if not wanted.data.exists():
            raise CommandError(f"{wanted.data} does not exist.")
        recipe_named(wanted.recipe)
        sha256 = sha256_of(wanted.data)
        run_id = self.run_id(wanted, sha256)
        dataset = self.read(wanted.data, wanted.step)
        cases = list(_with_unique_ids(_limited(dataset, wanted)))
        if not any(case.questions for case in cases):
            raise BadData(f"{wanted.data} holds no question that can be asked.")
        return Run(
            id=run_id,
            dataset=self.dataset,
            sha256=sha256,
            recipe=wanted.recipe,
            cases=cases,
            skipped=dict(dataset.skipped),
            limit=wanted.limit,
            most_questions=wanted.questions,
            folder=Folder(wanted.out / self.dataset / run_id),
        )

    def read(self, data: Path, step: str) -> Dataset:
        """The data set as this step needs it."""
        return self.load(data)

    def run_id(self, wanted: Wanted, sha256: str) -> str:
        """The given run id, or one derived from data, recipe, limit and embedder."""
        if wanted.run_id:
            return wanted.run_id
        parts = [re.sub(r"[^a-z0-9]", "_", wanted.recipe.lower())[:14], sha256[:8]]
        if _embedder() != f"local {MODEL_NAME} {DIMENSIONS}":
            parts.append(hashlib.sha256(_embedder().encode()).hexdigest()[:4])
        parts += ["smoke"] if wanted.questions else []
        parts += [f"first{wanted.limit}"] if wanted.limit else []
        return "_".join(parts)

    def folder(self, wanted: Wanted) -> Folder:
        """The folder of an existing run; its data may be missing."""
        runs = wanted.out / self.dataset
        if wanted.run_id:
            folder = Folder(runs / wanted.run_id)
        elif wanted.data is not None and wanted.data.exists():
            folder = Folder(runs / self.run_id(wanted, sha256_of(wanted.data)))
        else:
            there = sorted(run.parent.name for run in runs.glob("*/run.json"))
            raise BadRun(f"Name a run with --run-id; there are: {', '.join(there) or 'none'}.")
        if not folder.path.is_dir():
            raise BadRun(f"There is no run in {folder.path}.")
        return folder

    @contextmanager
    def at_work(
        self, run: Run, *, forget: Sequence[str] = (), drop: bool = False
    ) -> Iterator[None]:
        """Exclusive access to the run's folder and schema.

        Args:
            forget: Parts of the run to delete first; `run` is its schema.
            drop: Drop the schema after success. Otherwise it stays, so that the same
                command can resume.
        """
        with run.folder.alone(), alone_in(run.schema):
            run.folder.forget(*forget)
            if "run" in forget:
                drop_schema(run.schema)
            run.folder.begin("run", run.made_with)
            for log in (run.folder.ingest, run.folder.retrieval):
                log.mend()
            with own_schema(run.schema, keep=True, data=run.sha256):
                try:
                    yield
                except KeyboardInterrupt:
                    self.stderr.write("Stopped. The same command goes on from here.")
                    raise
            if drop:
                drop_schema(run.schema)

    def questions_done(self, run: Run) -> set[str]:
        """The questions in an unfinished log; a finished log is restarted."""
        folder, code = run.folder, code_of_recall()
        folder.begin("retrieval", {"recipe": run.recipe})
        before = folder.made_with("retrieval").get("code", code)
        if before != code and folder.retrieval.lines():
            self.stderr.write("Recall has changed since this run was stopped: it starts over.")
        if before != code or folder.report.exists():
            folder.forget("retrieval")
        questions = sum(len(case.questions) for case in run.cases)
        folder.begin("retrieval", {"recipe": run.recipe, "code": code, "questions": questions})
        folder.begin("retrieval", {"skipped": run.skipped})
        return {line["id"] for line in folder.retrieval.lines()}

    def finished(self, run: Run) -> dict[str, Any]:
        report = self.report(run.folder)
        write_json(run.folder.report, report)
        return report

    def report(self, folder: Folder) -> dict[str, Any]:
        """The figures, computed from the logs only."""
        return _report(folder)


ALL = ("run", "retrieval", "generation", "judged")


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its data."""

    id: str
    dataset: str
    sha256: str
    recipe: str
    cases: list[Case]
    skipped: dict[str, int]
    limit: int | None
    most_questions: int | None
    folder: Folder
    asked_again: bool = False

    @property
    def schema(self) -> str:
        return f"bench_{self.dataset}_{self.id}"

    @property
    def head(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "sha256": self.sha256, "run_id": self.id}

    @property
    def made_with(self) -> dict[str, Any]:
        """What must be unchanged when the run resumes."""
        return {
            **self.head,
            "--limit": self.limit,
            "questions": self.most_questions,
            "embedder": _embedder(),
        }


def _embedder() -> str:
    model = deployment_model()
    return f"{model.provider} {model.name} {model.dimensions}"


def _logs() -> Path:
    """The default folder: in the project, unless that is read-only, as in a container."""
    home = settings.BASE_DIR if os.access(settings.BASE_DIR, os.W_OK) else settings.LOCI_HOME
    return Path(home) / "data"


def _report(folder: Folder) -> dict[str, Any]:
    run, retrieval = folder.made_with("run"), folder.made_with("retrieval")
    return {
        "dataset": run["dataset"],
        "sha256": run["sha256"],
        "run_id": run["run_id"],
        "recipe": retrieval["recipe"],
        "logs": str(folder.path),
        "skipped": retrieval["skipped"],
        **retrieval_report(folder.retrieval.lines()),
        "ingest": _ingested(folder),
    }


def _ingested(folder: Folder) -> dict[str, Any]:
    return ingest_report(folder.ingest.lines())


def _limited(dataset: Dataset, wanted: Wanted) -> Iterator[Case]:
    left = wanted.questions
    for case in islice(dataset.cases, wanted.limit):
        if left is None:
            yield case
            continue
        yield dataclasses.replace(case, questions=case.questions[:left])
        left -= len(case.questions)
        if left <= 0:
            break


def _with_unique_ids(cases: Iterator[Case]) -> Iterator[Case]:
    """Give repeated names unique ids: they are different people with different questions."""
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case.id] += 1
        again = f"~{seen[case.id]}" if seen[case.id] > 1 else ""
        questions = tuple(dataclasses.replace(q, id=f"{q.id}{again}") for q in case.questions)
        yield dataclasses.replace(case, id=f"{case.id}{again}", questions=questions)


def _bar(cases: Sequence[Case], step: str) -> Iterator[Case]:
    yield from tqdm(cases, desc=step, unit="case", disable=None)

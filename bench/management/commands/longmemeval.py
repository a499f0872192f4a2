from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from bench.answer_judging import accuracy_report, judge_all
from bench.answers import Reader, answer_all, answers_report, endpoint
from bench.command import BenchmarkCommand, Wanted
from bench.datasets import longmemeval
from bench.datasets.base import Dataset
from bench.logs import BadRun
from bench.runs import alone_in, own_schema, schemas


class Command(BenchmarkCommand):
    dataset = "longmemeval"
    load = staticmethod(longmemeval.load)
    steps: ClassVar[dict[str, str]] = {
        "download": "fetch the published files",
        **BenchmarkCommand.steps,
        "smoke": "full, of ten instances",
        "qa": "have a model answer from memory",
        "score-qa": "have a model judge the answers",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        add = parser.add_argument
        add("--file", action="append", help="download: s, oracle, m, or a name; s and oracle.")
        add("--url", default=longmemeval.ADDRESS, help="download: the folder that holds the files.")
        add("--model", help="qa: another model of LOCI_LLM_PROVIDER than LOCI_LLM_MODEL.")
        add("--top-k", type=int, help="qa: at most so many drawers; as in the chat unless given.")
        add("--budget", type=int, help="qa: tokens of memory; as in the chat unless given.")
        add("--judge", help="score-qa: another model of LOCI_LLM_PROVIDER than LOCI_LLM_MODEL.")

    def step(self, name: str) -> Callable[[Wanted], dict[str, Any]]:
        own = {"download": self.download, "qa": self.qa, "score-qa": self.score_qa}
        return own[name] if name in own else super().step(name)

    def read(self, data: Path, step: str) -> Dataset:
        return longmemeval.load(data, abstentions=step == "qa")

    def download(self, wanted: Wanted) -> dict[str, Any]:
        folder, fetched = wanted.out / self.dataset, []
        for name in wanted.more.get("file") or ["s", "oracle"]:
            if "/" in name or name.startswith("."):
                raise BadRun(f"{name!r} is no file's name; say s, oracle or m.")
            file = longmemeval.FILES.get(name) or _published(name)
            address = wanted.more.get("url") or longmemeval.ADDRESS
            fetched.append(longmemeval.fetch(file, folder, address))
        for each in fetched:
            if not each.checked:
                self.stderr.write(
                    f"Nothing is known to check {each.path.name} against. Its SHA-256 was written "
                    "down beside it, and will hold from now on."
                )
        return {"dataset": self.dataset, "files": [_file_entry(each) for each in fetched]}

    def qa(self, wanted: Wanted) -> dict[str, Any]:
        model = endpoint(wanted.more.get("model"))
        chosen = {"top_k": wanted.more.get("top_k"), "budget_tokens": wanted.more.get("budget")}
        if any(number is not None and number < 1 for number in chosen.values()):
            raise BadRun("--top-k and --budget are numbers from 1.")
        given = {name: number for name, number in chosen.items() if number}
        reader = Reader(model, wanted.recipe, **given)
        run = self.run(wanted)
        forget = ("generation", "judged") if wanted.fresh else ()
        with self.at_work(run, forget=forget):
            run.folder.begin("generation", reader.described())
            run.folder.generation.mend()
            answer_all(run.cases, reader, run.folder)
        questions = sum(len(case.questions) for case in run.cases)
        return {**run.head, **answers_report(run.folder, questions)}

    def score_qa(self, wanted: Wanted) -> dict[str, Any]:
        judge, folder = endpoint(wanted.more.get("judge")), self.folder(wanted)
        if not folder.generation.lines():
            raise BadRun(f"{folder.generation.path} holds no answer to judge; run `qa` first.")
        run = folder.made_with("run")
        schema = f"bench_{self.dataset}_{run['run_id']}"
        with ExitStack() as work:
            work.enter_context(folder.alone())
            work.enter_context(alone_in(schema))
            if wanted.fresh:
                folder.forget("judged")
            folder.begin("judged", {"model": judge.model})
            folder.judged.mend()
            # The calls' rows are kept there as well. One made for them alone is dropped.
            keep = schema in schemas(schema)
            work.enter_context(own_schema(schema, keep=keep, data=run["sha256"]))
            judge_all(folder, judge)
        if not folder.judged.lines():
            raise BadRun("No answer could be judged; failed.jsonl beside the answers says why.")
        head = {name: run[name] for name in ("dataset", "sha256", "run_id")}
        return {**head, **accuracy_report(folder)}


def _published(name: str) -> longmemeval.Published:
    """A file by its name: with its checksum, where it is one of those that are known."""
    known = {file.name: file for file in longmemeval.FILES.values()}
    return known.get(name) or longmemeval.Published(name)


def _file_entry(fetched: longmemeval.Fetched) -> dict[str, Any]:
    return {
        "path": str(fetched.path),
        "sha256": fetched.sha256,
        "bytes": fetched.size,
        "fetched": not fetched.was_there,
        "checked": fetched.checked,
    }

"""`manage.py longmemeval`: the benchmark's steps, with answers judged by a model.

The rules of judging are those of the published evaluation, a prompt for each type of question and
one for those that cannot be answered; the wording is ours.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bench.answers import Reader, answer_all, answers_report, ask_each, endpoint, missing, spent
from bench.command import BenchmarkCommand, Wanted
from bench.datasets import Dataset, longmemeval
from bench.logs import BadRun, Folder
from bench.metrics import figure, interval, interval_of_groups, mean, summary
from bench.runs import alone_in, own_schema, schemas
from llm import chat
from llm.errors import BadModelOutput
from llm.models import Usage
from llm.providers import Endpoint


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


_WHOLE = (
    "Below are a question, its correct answer and a model's reply. Judge whether the reply gives "
    "the correct answer. It does if it contains that answer, says the same in other words, or "
    "lists every step from which that answer follows. It does not if it gives only a part of what "
    "the correct answer asks for."
)
_DAYS_FORGIVEN = (
    " Where a number of days, weeks, months or the like is asked for, a count that is wrong by one "
    "(19 days instead of 18, say) is still right."
)
_UPDATED = (
    "Below are a question, its correct answer and a model's reply. Judge whether the reply gives "
    "the correct answer. A reply that also mentions what was so before is right as long as it "
    "gives the up-to-date answer that is required."
)
_PREFERENCE = (
    "Below are a question, a description of the personal reply that is wished for, and a model's "
    "reply. Judge whether the reply meets the description. It need not touch every point of it: "
    "it is right if it recalls what the person has said of themselves and uses it correctly."
)
_UNANSWERABLE = (
    "Below are a question that cannot be answered from what is known, an explanation why, and a "
    "model's reply. Judge whether the reply recognises that the question cannot be answered: it "
    "may say that the information is missing, or that something else is known but not what was "
    "asked for."
)
_RULES = {
    "single-session-user": _WHOLE,
    "single-session-assistant": _WHOLE,
    "multi-session": _WHOLE,
    "temporal-reasoning": _WHOLE + _DAYS_FORGIVEN,
    "knowledge-update": _UPDATED,
    "single-session-preference": _PREFERENCE,
}
_END = "Say only yes or no: {asks}"
_VERDICT = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Answer:
    line: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.line["question_id"])


def judge_all(folder: Folder, endpoint: Endpoint) -> None:
    """Judge the answers that are not judged yet.

    Raises:
        BadRun: the model keeps failing; or a question's type is unknown.
    """
    judged = {line["question_id"] for line in folder.judged.lines()}
    answers = missing(map(_Answer, folder.generation.lines()), judged)
    ask_each(
        answers,
        lambda answer: _judge(answer, endpoint),
        step="score-qa",
        log=folder.judged,
        failed=folder.failed,
        total=len(answers),
    )


def _judge(answer: _Answer, endpoint: Endpoint) -> dict[str, Any]:
    said = chat.complete(
        [{"role": "user", "content": judge_prompt(answer.line)}],
        endpoint=endpoint,
        purpose=Usage.Purpose.MEMORY_QA,
    )
    return {
        "question_id": answer.id,
        "question_type": answer.line["question_type"],
        "unanswerable": answer.line["unanswerable"],
        "correct": verdict(said.text),
        "said": said.text,
        "judge": said.model,
    }


def judge_prompt(answer: Mapping[str, Any]) -> str:
    """The judge's prompt for an answer, a line of the generation log.

    Raises:
        BadRun: there is no rule for this type of question.
    """
    kind, asks = answer["question_type"], "is the reply right?"
    if answer["unanswerable"]:
        rule, reference = _UNANSWERABLE, "Explanation"
        asks = "does the reply recognise that the question cannot be answered?"
    elif kind in _RULES:
        rule = _RULES[kind]
        reference = "Description" if rule is _PREFERENCE else "Correct answer"
    else:
        raise BadRun(f"Question {answer['question_id']} is of type {kind!r}, which has no rule.")
    parts = (
        rule,
        f"Question: {answer['question']}",
        f"{reference}: {answer['answer']}",
        f"Reply: {answer['hypothesis']}",
        _END.format(asks=asks),
    )
    return "\n\n".join(parts)


def verdict(said: str) -> bool:
    """
    Raises:
        BadModelOutput: it is neither a yes nor a no, and so no judgement.
    """
    words = {word.lower() for word in _VERDICT.findall(said)}
    if len(words) != 1:
        raise BadModelOutput("The judge said neither yes nor no; try another model with --judge.")
    return words == {"yes"}


def accuracy_report(folder: Folder) -> dict[str, Any]:
    """Accuracy by type and overall, abstentions among their type and apart, and what it cost."""
    answers, judged = folder.generation.lines(), folder.judged.lines()
    failures = folder.failed.lines()
    return {
        "reader": folder.made_with("generation"),
        "judge": folder.made_with("judged"),
        "questions": len(judged),
        "unjudged": len(answers) - len(judged),
        "metrics": accuracies(judged),
        "usage": {
            "qa": spent(answers, [f for f in failures if f["step"] == "qa"]),
            "score-qa": spent(judged, [f for f in failures if f["step"] == "score-qa"]),
        },
    }


def accuracies(judged: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """
    Args:
        judged: Lines of the log of judgements; not empty.
    """
    by_type: dict[str, list[float]] = defaultdict(list)
    abstained: list[float] = []
    for line in judged:
        by_type[line["question_type"]].append(float(line["correct"]))
        if line["unanswerable"]:
            abstained.append(float(line["correct"]))
    groups = list(by_type.values())
    every = [float(line["correct"]) for line in judged]
    overall = {
        "accuracy": figure(mean(every), interval(every), len(every)),
        "task_averaged_accuracy": figure(
            mean([mean(group) for group in groups]), interval_of_groups(groups), len(groups)
        ),
        **summary({"abstention_accuracy": abstained} if abstained else {}),
    }
    return {
        "overall": overall,
        "by_type": {kind: summary({"accuracy": by_type[kind]}) for kind in sorted(by_type)},
    }

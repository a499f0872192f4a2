"""Judge answers with a model, by LongMemEval's rules.

The rules are those of the published evaluation, a prompt for each type of question and one for
those that cannot be answered; the wording is ours.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.answers import ask_each, missing, spent
from bench.logs import BadRun, Folder
from bench.metrics import figure, interval, interval_of_groups, mean, summary
from llm import chat
from llm.errors import BadModelOutput
from llm.models import Usage
from llm.providers import Endpoint

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

"""Answer questions with a model and recall's context, as in the chat: each call is metered, logged
and resumable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from django.db.models import Count, Max, Q, Sum
from tqdm import tqdm

from bench.datasets import Case, Question
from bench.logs import BadRun, Folder, Log
from bench.runs import prepare, reranks, take_in
from chat.models import Message
from chat.prompt import prompt
from chat.reply_writer import CONTEXT_TOKENS
from llm import chat
from llm.chat import Completion
from llm.errors import LLMError, ModelRefused
from llm.models import Usage
from llm.providers import Endpoint, deployment_endpoint
from llm.usage import OK
from palace.models import Palace
from palace.recall import RecallRequest, Recollection, recall

# After this many consecutive failures the model is assumed down.
MOST_IN_A_ROW = 3
NO_MODEL = (
    "This step asks a chat model, and none is set: set LOCI_LLM_PROVIDER, LOCI_LLM_MODEL and "
    "LOCI_LLM_API_KEY (docs/models.md says how), then run it again."
)


def endpoint(model: str | None) -> Endpoint:
    """The operator's model, or another one of the same provider.

    Raises:
        BadRun: no model is configured, or its settings are invalid.
    """
    try:
        found = deployment_endpoint()
    except ModelRefused as error:
        raise BadRun(str(error)) from None
    if found is None:
        raise BadRun(NO_MODEL)
    return found.with_model(model) if model else found


class Asked(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=Asked)


def ask_each(
    items: Iterable[Item],
    ask: Callable[[Item], Mapping[str, Any]],
    *,
    step: str,
    log: Log,
    failed: Log,
    total: int,
) -> None:
    """Log the result of `ask` for each item; failed calls have a separate log.

    Raises:
        BadRun: several calls failed in a row.
    """
    in_a_row = 0
    for item in tqdm(items, total=total, desc=step, unit="question", disable=None):
        before = _last_call()
        try:
            line = ask(item)
        except LLMError as error:
            in_a_row += 1
            entry = {"step": step, "question_id": item.id, "error": error.code, "said": str(error)}
            failed.append({**entry, "usage": _calls_since(before)})
            if in_a_row == MOST_IN_A_ROW:
                raise BadRun(
                    f"{in_a_row} questions in a row failed. {error} The same command goes on with "
                    "what is missing."
                ) from None
            continue
        in_a_row = 0
        log.append({**line, "usage": _calls_since(before)})


def _last_call() -> int:
    return Usage.objects.aggregate(last=Max("pk"))["last"] or 0


def _calls_since(last: int) -> dict[str, Any]:
    """Usage of chat model calls since then, without embeddings."""
    calls = Usage.objects.filter(pk__gt=last).exclude(purpose=Usage.Purpose.MEMORY_EMBED)
    used = Q(tokens_in__gt=0) | Q(tokens_out__gt=0)
    found = calls.aggregate(
        calls=Count("pk"),
        failed=Count("pk", filter=~Q(outcome=OK)),
        all_in=Sum("tokens_in", default=0),
        all_out=Sum("tokens_out", default=0),
        cost=Sum("cost_usd", default=Decimal(0)),
        unpriced=Count("pk", filter=used & Q(cost_usd=None)),
    )
    return {
        "calls": found["calls"],
        "failed": found["failed"],
        "tokens_in": found["all_in"],
        "tokens_out": found["all_out"],
        "cost_usd": float(found["cost"]),
        "unpriced": found["unpriced"],
    }


def spent(*logs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The total usage of the lines.

    `cost_usd` is that of the calls whose price is known; `unpriced` counts the others.
    """
    usages = [line["usage"] for lines in logs for line in lines]
    names = ("calls", "failed", "tokens_in", "tokens_out", "cost_usd", "unpriced")
    total = {name: sum(usage[name] for usage in usages) for name in names}
    return {**total, "cost_usd": round(total["cost_usd"], 6)}


def missing(wanted: Iterable[Item], done: Collection[str]) -> list[Item]:
    return [item for item in wanted if item.id not in done]


@dataclass(frozen=True, slots=True)
class Reader:
    """How questions are answered.

    Attributes:
        top_k: At most so many drawers; None for what the product gives by itself.
        budget_tokens: Length of the memory block.
    """

    endpoint: Endpoint
    recipe: str
    top_k: int | None = None
    budget_tokens: int = CONTEXT_TOKENS

    def described(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe,
            "model": self.endpoint.model,
            "top_k": self.top_k,
            "budget_tokens": self.budget_tokens,
        }


@dataclass(frozen=True, slots=True)
class _PendingQuestion:
    palace: Palace
    question: Question

    @property
    def id(self) -> str:
        return self.question.id


def answer_all(cases: Sequence[Case], reader: Reader, folder: Folder) -> None:
    """Answer the remaining questions, after ingesting the remaining cases.

    Raises:
        BadRun: the model keeps failing.
    """
    done = {line["question_id"] for line in folder.generation.lines()}
    ask_each(
        _questions(cases, reader.recipe, folder, done),
        lambda pending: _answer(pending, reader),
        step="qa",
        log=folder.generation,
        failed=folder.failed,
        total=sum(question.id not in done for case in cases for question in case.questions),
    )


def _questions(
    cases: Sequence[Case], recipe: str, folder: Folder, done: Collection[str]
) -> Iterator[_PendingQuestion]:
    for case in cases:
        waiting = [question for question in case.questions if question.id not in done]
        if waiting:
            palace = take_in(case, folder.ingest)
            prepare(palace, recipe)
            yield from (_PendingQuestion(palace, question) for question in waiting)


def _answer(pending: _PendingQuestion, reader: Reader) -> dict[str, Any]:
    palace, question = pending.palace, pending.question
    found = recall(
        palace,
        RecallRequest(
            question.text,
            top_k=reader.top_k,
            now=question.now,
            recipe=reader.recipe,
            budget_tokens=reader.budget_tokens,
            rerank=reranks(reader.recipe),
        ),
    )
    said = [Message(role="user", text=question.text)]
    answer = chat.complete(
        prompt(None, found.context, said, question.now or palace.created_at),
        endpoint=reader.endpoint,
        purpose=Usage.Purpose.MEMORY_QA,
        owner_id=palace.owner_id,
    )
    return _line(question, found, answer)


def _line(question: Question, found: Recollection, answer: Completion) -> dict[str, Any]:
    """A line of the log, with the names that LongMemEval's own evaluation reads."""
    return {
        "question_id": question.id,
        "hypothesis": answer.text,
        "question_type": question.type,
        "question": question.text,
        "answer": question.answer,
        "unanswerable": question.unanswerable,
        "model": answer.model,
        "finish_reason": answer.finish_reason,
        "context_tokens": found.context_tokens,
        "recollection": str(found.uuid),
        "turns": [f"{hit.drawer.conversation}/{hit.drawer.external_id}" for hit in found.hits],
    }


def answers_report(folder: Folder, wanted: int) -> dict[str, Any]:
    answers = folder.generation.lines()
    failures = [line for line in folder.failed.lines() if line["step"] == "qa"]
    return {
        "reader": folder.made_with("generation"),
        "answered": len(answers),
        "unanswered": wanted - len(answers),
        "usage": spent(answers, failures),
    }

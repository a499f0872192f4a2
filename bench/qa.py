"""Answer questions with a model and recall's context, as in the chat."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench import asking
from bench.datasets.base import Case, Question
from bench.logs import Folder
from bench.runs import prepare, reranks, take_in
from chat.models import Message
from chat.prompt import prompt
from chat.reply_writer import CONTEXT_TOKENS
from llm import chat
from llm.models import Usage
from llm.providers import Endpoint
from palace.models import Palace
from palace.recall import RecallRequest, recall


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
    asking.ask_each(
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
    return {
        # The names that LongMemEval's own evaluation reads.
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
        "usage": asking.spent(answers, failures),
    }

"""Repeated questions: the effect of a user's earlier questions on recall.

Every question is asked once, and each becomes a chat of its own in the palace: the question, and
the reply that quotes what was found, as the product writes it without a model. Then all of them are
asked a second time, every other one in other words. Nothing but those chats differs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tqdm import tqdm

from bench.datasets.base import Case, Question
from bench.logs import Log
from bench.metrics import mean
from bench.rewording import reword
from bench.runs import is_taken_in, prepare, reranks
from bench.scores import scores
from chat.mining_queue import SOURCE
from chat.prompt import NO_MODEL, QUOTED, extractive_reply
from language.transcripts import Transcript, Turn
from palace.models import Palace
from palace.recall.recall import recall
from palace.recall.request import RecallRequest

_CHAT = "asked before: "
_QUESTION, _REPLY = "question", "reply"
# The deepest rank considered.
PLACES = 10
_COMPARED = ("turn_recall@10", "session_recall@10")


def asked_again(case: Case, palace: Palace, recipe: str, log: Log) -> Case:
    """The case with a chat added for each question, and the questions to repeat.

    Args:
        palace: That person's palace without those chats: the replies quote it.
        log: Records whether the chats were added already; then they are not created.
    """
    again = dataclasses.replace(
        case,
        id=f"{case.id} asked again",
        questions=tuple(
            dataclasses.replace(question, text=reword(question.text)) if place % 2 else question
            for place, question in enumerate(case.questions)
        ),
    )
    if is_taken_in(again, log):
        return again
    chats = tuple(_chats(case, palace, recipe))
    return dataclasses.replace(again, transcripts=case.transcripts + chats)


def _chats(case: Case, palace: Palace, recipe: str) -> Iterator[Transcript]:
    prepare(palace, recipe)
    latest = max(each.turns[-1].said_at for each in case.transcripts if each.turns)
    for question in tqdm(case.questions, desc=f"{case.id} !", leave=False, disable=None):
        yield _chat(palace, question, question.now or latest, recipe)


def _chat(palace: Palace, question: Question, now: datetime, recipe: str) -> Transcript:
    found = recall(
        palace,
        RecallRequest(question.text, top_k=QUOTED, now=now, recipe=recipe, rerank=reranks(recipe)),
    )
    reply = extractive_reply(found.hits, why=NO_MODEL)
    return Transcript(
        source=SOURCE,
        external_id=f"{_CHAT}{question.id}",
        title="",
        turns=(
            Turn(_QUESTION, "user", question.text, now),
            Turn(_REPLY, "assistant", reply, now + timedelta(seconds=5)),
        ),
    )


def asked_again_report(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Compare both runs, for each half and overall.

    Args:
        first: Log lines of the first run; likewise `second`.
    """
    before = {line["id"]: line for line in first}
    pairs = [(before[line["id"]], line) for line in second]
    halves = {
        "word_for_word": [p for p in pairs if p[0]["question"] == p[1]["question"]],
        "reworded": [p for p in pairs if p[0]["question"] != p[1]["question"]],
        "overall": pairs,
    }
    return {name: _compared(half) for name, half in halves.items() if half}


def _compared(
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> dict[str, Any]:
    report: dict[str, Any] = {"questions": len(pairs)}
    values = [(dict(scores(first)), dict(scores(second))) for first, second in pairs]
    for name in _COMPARED:
        both = [(one[name], two[name]) for one, two in values if name in one]
        if both:
            before, after = mean([one for one, _ in both]), mean([two for _, two in both])
            report[name] = {
                "before": round(before, 4),
                "after": round(after, 4),
                "loss": round(before - after, 4),
            }
    places = [_own(hit) for _, second in pairs for hit in second["hits"][:PLACES]]
    firsts = [_own(hit) for _, second in pairs for hit in second["hits"][:1]]
    return {
        **report,
        f"own_questions@{PLACES}": _share(places, _QUESTION),
        f"own_replies@{PLACES}": _share(places, _REPLY),
        "own_questions@1": _share(firsts, _QUESTION),
        "own_replies@1": _share(firsts, _REPLY),
    }


def _own(hit: Mapping[str, Any]) -> str:
    """Which part of an added chat a message is; empty for others."""
    return str(hit["turn"]).rpartition("/")[2] if hit["session"].startswith(_CHAT) else ""


def _share(places: Sequence[str], part: str) -> float:
    return round(places.count(part) / len(places), 4) if places else 0.0

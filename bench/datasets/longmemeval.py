"""LongMemEval: one person's chats with an assistant, a question each (Wu et al. 2024)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.datasets.base import BLANK, Case, Dataset, Question, read_as, read_list, role, words
from language.transcripts import Transcript, Turn

ABSTENTION = "abstention: has no gold session"


def load(path: Path, *, abstentions: bool = False) -> Dataset:
    """
    Args:
        abstentions: Include unanswerable questions, which retrieval skips.
    """
    skipped: Counter[str] = Counter()
    cases = _cases(path, abstentions=abstentions, skipped=skipped)
    return Dataset("longmemeval", cases, skipped)


def _cases(path: Path, *, abstentions: bool, skipped: Counter[str]) -> Iterator[Case]:
    for number, item in enumerate(read_list(path), start=1):
        with read_as(f"{path}: instance {number}"):
            name = str(item["question_id"])
            if "_abs" in name and not abstentions:
                skipped[ABSTENTION] += 1
                continue
            if not item["question"].strip():
                skipped[BLANK] += 1
                continue
        with read_as(f"{path}: instance {number} ({name})"):
            case = Case(name, tuple(_transcripts(item)), (_question(item),))
        yield case


def _transcripts(item: dict[str, Any]) -> Iterator[Transcript]:
    sessions = zip(
        item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True
    )
    for session_id, date, session in sessions:
        start = _time(date)
        turns = tuple(
            Turn(
                external_id=str(place),
                role=role(turn["role"]),
                text=words(turn["content"]),
                said_at=start + timedelta(seconds=30 * place),
            )
            for place, turn in enumerate(session)
        )
        yield Transcript("longmemeval", words(session_id), "", turns)


def _question(item: dict[str, Any]) -> Question:
    gold = {
        f"{session_id}/{place}"
        for session_id, session in zip(
            item["haystack_session_ids"], item["haystack_sessions"], strict=True
        )
        for place, turn in enumerate(session)
        if turn.get("has_answer") and turn["role"] == "user"
    }
    return Question(
        id=str(item["question_id"]),
        type=words(item["question_type"]),
        text=words(item["question"]),
        now=_time(item["question_date"]),
        gold_turns=frozenset(gold),
        gold_sessions=frozenset(item["answer_session_ids"]),
        answer=str(item["answer"]),  # Some are numbers.
        unanswerable="_abs" in str(item["question_id"]),
    )


def _time(text: str) -> datetime:
    """`2023/05/30 (Tue) 23:40`"""
    return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)

"""LongMemEval: one person's chats with an assistant, a question each (Wu et al. 2024)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.datasets.base import Case, Dataset, Question, read_json
from palace.transcripts import Transcript, Turn


def load(path: Path) -> Dataset:
    skipped: Counter[str] = Counter()
    return Dataset("longmemeval", _cases(read_json(path), skipped), skipped)


def _cases(instances: list[dict[str, Any]], skipped: Counter[str]) -> Iterator[Case]:
    for item in instances:
        if "_abs" in item["question_id"]:
            skipped["abstention: has no gold session"] += 1
            continue
        yield Case(item["question_id"], tuple(_transcripts(item)), (_question(item),))


def _transcripts(item: dict[str, Any]) -> Iterator[Transcript]:
    sessions = zip(
        item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True
    )
    for session_id, date, session in sessions:
        start = _time(date)
        turns = tuple(
            Turn(str(place), turn["role"], turn["content"], start + timedelta(seconds=30 * place))
            for place, turn in enumerate(session)
        )
        yield Transcript("longmemeval", session_id, "", turns)


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
        id=item["question_id"],
        type=item["question_type"],
        text=item["question"],
        now=_time(item["question_date"]),
        gold_turns=frozenset(gold),
        gold_sessions=frozenset(item["answer_session_ids"]),
    )


def _time(text: str) -> datetime:
    """`2023/05/30 (Tue) 23:40`"""
    return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)

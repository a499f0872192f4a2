"""BEAM: very long chats with an assistant, with probing questions (Tavakoli et al. 2025)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.datasets.base import Case, Dataset, Question, read_json
from palace.transcripts import Transcript, Turn

# The generator's bookkeeping at the end of a message: "->-> 1,1".
_MARKER = re.compile(r"\s*->->\s*[\d,. ]*\s*$")
_NO_DATE = datetime(2024, 1, 1, tzinfo=UTC)


def load(path: Path) -> Dataset:
    """`path`: a folder of chats, each with `chat.json` and `probing_questions/`."""
    skipped: Counter[str] = Counter()
    return Dataset("beam", _cases(path, skipped), skipped)


def _cases(path: Path, skipped: Counter[str]) -> Iterator[Case]:
    for chat in sorted(path.rglob("chat.json"), key=lambda p: (len(p.parent.name), p.parent.name)):
        batches = read_json(chat)
        transcripts = tuple(_transcripts(batches))
        where = {turn.external_id: t.external_id for t in transcripts for turn in t.turns}
        now = transcripts[-1].turns[-1].said_at + timedelta(days=1)
        probes = read_json(chat.parent / "probing_questions" / "probing_questions.json")
        questions = tuple(_questions(chat.parent.name, probes, where, now, skipped))
        yield Case(chat.parent.name, transcripts, questions)


def _transcripts(batches: list[dict[str, Any]]) -> Iterator[Transcript]:
    start = _NO_DATE
    for number, batch in enumerate(batches, start=1):
        messages = [message for turn in batch["turns"] for message in turn]
        anchors = [message["time_anchor"] for message in messages if message.get("time_anchor")]
        start = _date(anchors[0]) if anchors else start + timedelta(days=7)
        turns = tuple(
            Turn(
                external_id=str(message["id"]),
                role=message["role"],
                text=_MARKER.sub("", message["content"]),
                said_at=start + timedelta(minutes=place),
            )
            for place, message in enumerate(messages)
        )
        yield Transcript("beam", str(number), "", turns)


def _date(text: str) -> datetime:
    """`March-15-2024`"""
    return datetime.strptime(text, "%B-%d-%Y").replace(tzinfo=UTC)


def _questions(
    chat: str,
    probes: dict[str, list[dict[str, Any]]],
    where: dict[str, str],
    now: datetime,
    skipped: Counter[str],
) -> Iterator[Question]:
    for kind, items in probes.items():
        for number, item in enumerate(items):
            ids = {str(i) for i in _numbers(item.get("source_chat_ids"))} & set(where)
            if not ids:
                skipped["no gold message"] += 1
                continue
            yield Question(
                id=f"{chat}/{kind}/{number}",
                type=kind,
                text=item["question"],
                now=now,
                gold_turns=frozenset(f"{where[i]}/{i}" for i in ids),
                gold_sessions=frozenset(where[i] for i in ids),
            )


def _numbers(value: Any) -> Iterator[int]:
    """Gold comes as a number, a list, or lists within a dict."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, dict):
        yield from _numbers(list(value.values()))

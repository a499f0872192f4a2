"""LoCoMo: long conversations between two people over months (Maharana et al. 2024)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.datasets.base import BLANK, Case, Dataset, Question, read_as, read_list, words
from language.transcripts import Transcript, Turn

_TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
# Gold turns are named D8:6, but also "D8:6; D9:17", "D30:05" and "D:11:26".
_TURN = re.compile(r"D:?(\d+):(\d+)")
NO_EVIDENCE = "no evidence that resolves"
ONE_MISSING = "evidence without a turn, of questions asked all the same"


def load(path: Path) -> Dataset:
    skipped: Counter[str] = Counter()
    return Dataset("locomo", _cases(path, skipped), skipped)


def _cases(path: Path, skipped: Counter[str]) -> Iterator[Case]:
    for number, sample in enumerate(read_list(path), start=1):
        with read_as(f"{path}: conversation {number}"):
            transcripts = tuple(_transcripts(sample))
            turns = {f"{t.external_id}/{turn.external_id}" for t in transcripts for turn in t.turns}
            now = max(t.turns[-1].said_at for t in transcripts) + timedelta(days=1)
            questions = tuple(_questions(sample, turns, now, skipped))
            case = Case(str(sample["sample_id"]), transcripts, questions)
        yield case


def _transcripts(sample: dict[str, Any]) -> Iterator[Transcript]:
    conversation = sample["conversation"]
    for number in _sessions(conversation):
        start = _time(conversation[f"session_{number}_date_time"])
        turns = tuple(
            Turn(
                external_id=words(turn["dia_id"]),
                role="user",
                speaker=words(turn["speaker"]),
                text=_text(turn),
                said_at=start + timedelta(seconds=30 * place),
            )
            for place, turn in enumerate(conversation[f"session_{number}"])
        )
        if turns:
            yield Transcript("locomo", f"D{number}", "", turns)


def _sessions(conversation: dict[str, Any]) -> list[int]:
    return sorted(
        int(m.group(1)) for key in conversation if (m := re.fullmatch(r"session_(\d+)", key))
    )


def _text(turn: dict[str, Any]) -> str:
    """A shared picture counts by its caption, as in the published evaluation."""
    caption = turn.get("blip_caption")
    text = words(turn["text"])
    return f"{text} [shared a picture: {caption}]" if caption else text


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _questions(
    sample: dict[str, Any], turns: set[str], now: datetime, skipped: Counter[str]
) -> Iterator[Question]:
    for number, item in enumerate(sample["qa"]):
        named = _TURN.findall(" ".join(item.get("evidence") or []))
        wanted = {f"D{int(s)}/D{int(s)}:{int(t)}" for s, t in named}
        gold = wanted & turns
        if not gold or not item["question"].strip():
            skipped[BLANK if gold else NO_EVIDENCE] += 1
            continue
        if wanted > gold:
            skipped[ONE_MISSING] += len(wanted - gold)
        yield Question(
            id=f"{sample['sample_id']}/{number}",
            type=_TYPES[item["category"]],
            text=item["question"],
            now=now,
            gold_turns=frozenset(gold),
            gold_sessions=frozenset(turn.split("/")[0] for turn in gold),
        )

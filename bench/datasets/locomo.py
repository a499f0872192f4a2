"""LoCoMo: long conversations between two people over months (Maharana et al. 2024)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.datasets.base import Case, Dataset, Question, read_json
from palace.transcripts import Transcript, Turn

_TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
# Gold turns are named D8:6, but also "D8:6; D9:17" and "D30:05".
_TURN = re.compile(r"D(\d+):(\d+)")


def load(path: Path) -> Dataset:
    skipped: Counter[str] = Counter()
    return Dataset("locomo", _cases(read_json(path), skipped), skipped)


def _cases(samples: list[dict[str, Any]], skipped: Counter[str]) -> Iterator[Case]:
    for sample in samples:
        transcripts = tuple(_transcripts(sample))
        turns = {f"{t.external_id}/{turn.external_id}" for t in transcripts for turn in t.turns}
        now = max(t.turns[-1].said_at for t in transcripts) + timedelta(days=1)
        questions = _questions(sample, turns, now, skipped)
        yield Case(sample["sample_id"], transcripts, tuple(questions))


def _transcripts(sample: dict[str, Any]) -> Iterator[Transcript]:
    talk = sample["conversation"]
    for number in _sessions(talk):
        start = _time(talk[f"session_{number}_date_time"])
        turns = tuple(
            Turn(
                external_id=turn["dia_id"],
                role="user",
                speaker=turn["speaker"],
                text=_text(turn),
                said_at=start + timedelta(seconds=30 * place),
            )
            for place, turn in enumerate(talk[f"session_{number}"])
        )
        if turns:
            yield Transcript("locomo", f"D{number}", "", turns)


def _sessions(talk: dict[str, Any]) -> list[int]:
    return sorted(int(m.group(1)) for key in talk if (m := re.fullmatch(r"session_(\d+)", key)))


def _text(turn: dict[str, Any]) -> str:
    """A shared picture counts by its caption, as in the published evaluation."""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shared a picture: {caption}]" if caption else turn["text"]


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _questions(
    sample: dict[str, Any], turns: set[str], now: datetime, skipped: Counter[str]
) -> Iterator[Question]:
    for number, item in enumerate(sample["qa"]):
        named = _TURN.findall(" ".join(item.get("evidence", [])))
        gold = {f"D{int(s)}/D{int(s)}:{int(t)}" for s, t in named} & turns
        if not gold:
            skipped["no evidence that resolves"] += 1
            continue
        yield Question(
            id=f"{sample['sample_id']}/{number}",
            type=_TYPES[item["category"]],
            text=item["question"],
            now=now,
            gold_turns=frozenset(gold),
            gold_sessions=frozenset(turn.split("/")[0] for turn in gold),
        )

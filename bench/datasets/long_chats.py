"""Long chats. LoCoMo: of two people over months (Maharana et al. 2024). BEAM: very long ones with
an assistant, with probing questions (Tavakoli et al. 2025).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.datasets import (
    BLANK,
    BadData,
    Case,
    Dataset,
    Question,
    read_as,
    read_json,
    read_list,
    role,
    words,
)
from language.transcripts import Transcript, Turn

_TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
# Gold turns are named D8:6, but also "D8:6; D9:17", "D30:05" and "D:11:26".
_TURN = re.compile(r"D:?(\d+):(\d+)")
NO_EVIDENCE = "no evidence that resolves"
ONE_MISSING = "evidence without a turn, of questions asked all the same"


def load_locomo(path: Path) -> Dataset:
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


# The generator's bookkeeping at the end of a message: "->-> 1,1", "->-> 2,N/A".
_MARKER = re.compile(r"\s*->->\s*(?:\d|N/A|[,. ])*\s*$")
_CHATS = ("chat.json", "chat.json.gz")
_PROBES = ("probing_questions.json", "probing_questions.json.gz")
NO_GOLD = "no gold message"
_NO_DATE = datetime(2024, 1, 1, tzinfo=UTC)


def load_beam(path: Path) -> Dataset:
    """
    Args:
        path: A folder of chats, each with `chat.json` and `probing_questions/`; also one chat's
            folder, or its `chat.json`. Each file may be zipped, as `.json.gz`.
    """
    skipped: Counter[str] = Counter()
    return Dataset("beam", _beam_cases(path, skipped), skipped)


def _beam_cases(path: Path, skipped: Counter[str]) -> Iterator[Case]:
    root = path if path.is_dir() else path.parent
    chats = [path] if path.is_file() else [p for name in _CHATS for p in path.rglob(name)]
    if not chats:
        raise BadData(f"{path} holds no chat.json; name a folder of BEAM's chats.")
    for chat in sorted(chats, key=lambda p: (len(p.parent.parts), len(p.parent.name), p.parent)):
        # Chats of different lengths share numbers, so their path is their name.
        inside = chat.parent.relative_to(root).as_posix()
        name = chat.parent.name if inside == "." else inside
        batches, probes = read_list(chat), _probes(chat.parent)
        with read_as(f"{chat.parent}"):
            transcripts = tuple(_beam_transcripts(batches))
            where = {turn.external_id: t.external_id for t in transcripts for turn in t.turns}
            now = transcripts[-1].turns[-1].said_at + timedelta(days=1)
            case = Case(
                name, transcripts, tuple(_beam_questions(name, probes, where, now, skipped))
            )
        yield case


def _probes(chat: Path) -> dict[str, list[dict[str, Any]]]:
    found = [file for name in _PROBES if (file := chat / "probing_questions" / name).is_file()]
    if not found:
        raise BadData(f"{chat} lacks probing_questions/{_PROBES[0]}.")
    probes = read_json(found[0])
    if not isinstance(probes, dict):
        raise BadData(f"{found[0]} does not hold questions by their kind.")
    return probes


def _beam_transcripts(batches: list[dict[str, Any]]) -> Iterator[Transcript]:
    start = _NO_DATE
    for number, batch in enumerate(batches, start=1):
        messages = [message for turn in batch["turns"] for message in turn]
        anchors = [message["time_anchor"] for message in messages if message.get("time_anchor")]
        start = _date(anchors[0]) if anchors else start + timedelta(days=7)
        turns = tuple(
            Turn(
                external_id=str(message["id"]),
                role=role(message["role"]),
                text=_MARKER.sub("", words(message["content"])),
                said_at=start + timedelta(minutes=place),
            )
            for place, message in enumerate(messages)
        )
        yield Transcript("beam", str(number), "", turns)


def _date(text: str) -> datetime:
    """`March-15-2024`"""
    return datetime.strptime(text, "%B-%d-%Y").replace(tzinfo=UTC)


def _beam_questions(
    chat: str,
    probes: dict[str, list[dict[str, Any]]],
    where: dict[str, str],
    now: datetime,
    skipped: Counter[str],
) -> Iterator[Question]:
    for kind, items in probes.items():
        for number, item in enumerate(items):
            ids = {str(i) for i in _numbers(item.get("source_chat_ids"))} & set(where)
            if not ids or not item["question"].strip():
                skipped[BLANK if ids else NO_GOLD] += 1
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
    elif isinstance(value, str) and value.strip().isdecimal():
        yield int(value)
    elif isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, dict):
        yield from _numbers(list(value.values()))

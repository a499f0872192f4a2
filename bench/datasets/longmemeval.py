"""LongMemEval: one person's chats with an assistant, a question each (Wu et al. 2024). Its
published files are downloaded once and verified.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from tqdm import tqdm

from bench.datasets import BLANK, Case, Dataset, Question, read_as, read_list, role, words
from bench.logs import BadRun, only_one
from language.transcripts import Transcript, Turn

ABSTENTION = "abstention: has no gold session"

# A fixed revision, not "main", so that the checksums match.
ADDRESS = (
    "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/"
    "98d7416c24c778c2fee6e6f3006e7a073259d48f/"
)
_CHUNK = 1 << 20
_TIMEOUT_S = 30


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


@dataclass(frozen=True, slots=True)
class Published:
    """
    Attributes:
        sha256: Empty if unknown.
        size: Bytes; 0 if unknown.
    """

    name: str
    sha256: str = ""
    size: int = 0


# Checksums as the dataset's own pages give them for this revision, and as others who fetched the
# files have written down; they were compared with each other, not with files fetched here.
FILES = {
    "s": Published(
        "longmemeval_s_cleaned.json",
        "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
        277_383_467,
    ),
    "oracle": Published(
        "longmemeval_oracle.json",
        "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
        15_388_478,
    ),
    "m": Published(
        "longmemeval_m_cleaned.json",
        "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f",
        2_737_100_077,
    ),
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """
    Attributes:
        was_there: The file existed already.
        checked: It was verified against a known checksum; False if that was only recorded.
    """

    path: Path
    sha256: str
    size: int
    was_there: bool
    checked: bool


def fetch(file: Published, folder: Path, address: str = ADDRESS) -> Fetched:
    """Download the file to `folder` and verify it; resumes interrupted downloads.

    A file of no known checksum is fetched in one go; its checksum is written beside it, as
    `<name>.sha256`, and holds from then on.

    Raises:
        BadRun: it cannot be fetched, or is not the published one; says what to do by hand.
    """
    path, url = folder / file.name, f"{address.rstrip('/')}/{file.name}"
    busy = f"{file.name} is being fetched by another process."
    with only_one(folder / f".{file.name}.lock", busy):
        wanted = file.sha256 or _noted(path)
        if path.exists():
            _check_there(path, wanted)
            was_there = True
        else:
            part = path.with_name(f"{file.name}.part")
            _fetch(url, part, file, path)
            _check_fetched(part, wanted, url)
            part.replace(path)
            was_there = False
        digest = sha256(path)
        if not file.sha256:
            _note(path).write_text(f"{digest}  {file.name}\n", encoding="utf-8")
        return Fetched(path, digest, path.stat().st_size, was_there, checked=bool(wanted))


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _noted(path: Path) -> str:
    """The checksum recorded at the first download; empty before."""
    note = _note(path)
    return note.read_text(encoding="utf-8")[:64] if note.exists() else ""


def _fetch(url: str, part: Path, file: Published, path: Path) -> None:
    # Without a checksum, two halves of different files would go unnoticed.
    if not file.sha256:
        part.unlink(missing_ok=True)
    try:
        _continue(url, part)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise BadRun(_by_hand(url, file, path, error)) from None


def _continue(url: str, part: Path) -> None:
    """Fetch the missing rest of `part`, or all if the server does not support ranges."""
    there = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={there}-"} if there else {})
    with httpx2.stream(
        "GET", url, headers=headers, follow_redirects=True, timeout=_TIMEOUT_S
    ) as response:
        if there and response.status_code == httpx2.codes.RANGE_NOT_SATISFIABLE:
            return  # All of it is there; if it is not, its checksum differs.
        response.raise_for_status()
        there = there if response.status_code == httpx2.codes.PARTIAL_CONTENT else 0
        total = int(response.headers.get("Content-Length", 0)) + there or None
        bar = tqdm(
            desc=part.stem, total=total, initial=there, unit="B", unit_scale=True, disable=None
        )
        with part.open("ab" if there else "wb") as out, bar:
            for chunk in response.iter_raw(_CHUNK):
                out.write(chunk)
                bar.update(len(chunk))


def _by_hand(url: str, file: Published, path: Path, error: Exception) -> str:
    if isinstance(error, httpx2.HTTPStatusError):
        why = f"the server answered {error.response.status_code}"
    else:
        why = str(error) or type(error).__name__
    size = f" ({file.size / 1e6:,.0f} MB)" if file.size else ""
    checksum = f" Its SHA-256 is {file.sha256}." if file.sha256 else ""
    return (
        f"{file.name} could not be fetched: {why}. Run this again when the network is back, which "
        f"goes on where it stopped; or fetch {url}{size} by other means, on another machine "
        f"perhaps, and put it at {path}.{checksum} Then run a step with --data {path}"
    )


def _check_fetched(part: Path, wanted: str, url: str) -> None:
    """Delete a file that differs from the published one."""
    found = sha256(part)
    if wanted and found != wanted:
        part.unlink()
        raise BadRun(
            f"What {url} gave is not the published file: its SHA-256 is {found} and should be "
            f"{wanted}. It was deleted; run this again, or give another address with --url."
        )


def _check_there(path: Path, wanted: str) -> None:
    found = sha256(path)
    if wanted and found != wanted:
        raise BadRun(
            f"{path} is there, but is not the published file: its SHA-256 is {found} and should "
            f"be {wanted}. Move it away, then run this again."
        )


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

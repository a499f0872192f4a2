"""A data set as the runner sees it: people with conversations, and questions about them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from palace.transcripts import Transcript


@dataclass(frozen=True, slots=True)
class Question:
    """
    Attributes:
        now: When it is asked.
        gold_turns: Turns that hold the answer, as `conversation/message`.
        gold_sessions: Conversations that hold it.
    """

    id: str
    type: str
    text: str
    now: datetime | None
    gold_turns: frozenset[str]
    gold_sessions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Case:
    """One person's palace: what goes in, and what is asked."""

    id: str
    transcripts: tuple[Transcript, ...]
    questions: tuple[Question, ...]


@dataclass(slots=True)
class Dataset:
    """Cases in the file's order, and how many questions were left out, by reason."""

    name: str
    cases: Iterator[Case]
    skipped: Counter[str] = field(default_factory=Counter)


def read_json(path: Path) -> Any:
    """A `.json` or `.json.gz` file."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return json.load(file)
    return json.loads(path.read_text(encoding="utf-8"))

"""A data set as the runner sees it: people with conversations, and questions about them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from language.transcripts import ROLES, Role, Transcript

BLANK = "blank question"


class BadData(Exception):
    """A data set that cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Question:
    """
    Attributes:
        now: When it is asked.
        gold_turns: Turns that hold the answer, as `conversation/message`.
        gold_sessions: Conversations that hold it.
        answer: The reference answer, where the data set's answers are judged.
        unanswerable: The right answer is that nobody knows.
    """

    id: str
    type: str
    text: str
    now: datetime | None
    gold_turns: frozenset[str]
    gold_sessions: frozenset[str]
    answer: str = ""
    unanswerable: bool = False


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
    """A `.json` or `.json.gz` file.

    Raises:
        BadData: it is none, or not whole.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as file:
                return json.load(file)
        return json.loads(path.read_text(encoding="utf-8"))
    except IsADirectoryError:
        raise BadData(f"{path} is a folder; name the file in it.") from None
    except FileNotFoundError:
        raise BadData(f"{path} does not exist.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadData(f"{path} is no whole gzip file ({error}); fetch it again.") from None
    except (ValueError, RecursionError) as error:
        raise BadData(f"{path} is no whole JSON file ({error}); fetch it again.") from None


def read_list(path: Path) -> list[Any]:
    """
    Raises:
        BadData: the file is no JSON, or holds no list.
    """
    items = read_json(path)
    if not isinstance(items, list) or not items:
        raise BadData(f"{path} does not hold a list; it is not this data set's file.")
    return items


@contextmanager
def read_as(what: str) -> Iterator[None]:
    """Whatever the block misses in the data is told as what is wrong with `what`."""
    try:
        yield
    except KeyError as error:
        raise BadData(f"{what} lacks {error}.") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise BadData(f"{what} is not in the official form ({error}).") from None


def words(value: Any) -> str:
    """
    Raises:
        TypeError: it is no text.
    """
    if not isinstance(value, str):
        raise TypeError(f"a text is {type(value).__name__}")
    return value


def role(value: Any) -> Role:
    """
    Raises:
        ValueError: nobody has that role in a conversation.
    """
    for known in ROLES:
        if value == known:
            return known
    raise ValueError(f"{value!r} is no role")

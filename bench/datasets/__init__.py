"""The common form of data sets: people with conversations, and questions about them."""

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
    """The data set is invalid; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Question:
    """
    Attributes:
        now: The time of the question.
        gold_turns: Turns that hold the answer, as `conversation/message`.
        gold_sessions: Conversations that hold it.
        answer: The reference answer, if answers are judged.
        unanswerable: The right answer is to abstain.
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
    """One person's conversations and questions.

    Attributes:
        language: ISO 639-1, if the data set has several.
    """

    id: str
    transcripts: tuple[Transcript, ...]
    questions: tuple[Question, ...]
    language: str = ""


@dataclass(slots=True)
class Dataset:
    """Cases in the file's order, and the number of skipped questions by reason."""

    name: str
    cases: Iterator[Case]
    skipped: Counter[str] = field(default_factory=Counter)


def read_json(path: Path) -> Any:
    """A `.json` or `.json.gz` file.

    Raises:
        BadData: it is not gzip, or truncated.
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
        BadData: the file is not a JSON list.
    """
    items = read_json(path)
    if not isinstance(items, list) or not items:
        raise BadData(f"{path} does not hold a list; it is not this data set's file.")
    return items


@contextmanager
def read_as(what: str) -> Iterator[None]:
    """Translate errors about missing data in the block to BadData about `what`."""
    try:
        yield
    except KeyError as error:
        raise BadData(f"{what} lacks {error}.") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise BadData(f"{what} is not in the official form ({error}).") from None


def words(value: Any) -> str:
    """
    Raises:
        TypeError: it is not text.
    """
    if not isinstance(value, str):
        raise TypeError(f"a text is {type(value).__name__}")
    return value


def role(value: Any) -> Role:
    """
    Raises:
        ValueError: the role is unknown.
    """
    for known in ROLES:
        if value == known:
            return known
    raise ValueError(f"{value!r} is no role")

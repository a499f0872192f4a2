"""The corpus in this repository as a data set: a palace for each invented person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from bench.corpus import Asked, Person, read_people
from bench.datasets.base import Case, Dataset, Question


def load(path: Path) -> Dataset:
    """The people in a folder, one part of the corpus.

    Raises:
        BadData: a file is not in the corpus' form.
    """
    return Dataset("locibench", _cases(path), Counter())


def _cases(folder: Path) -> Iterator[Case]:
    for person in read_people(folder):
        talk = person.talk
        questions = tuple(_question(person, asked) for asked in person.questions)
        yield Case(talk.id, talk.transcripts, questions, talk.languages[0])


def _question(person: Person, asked: Asked) -> Question:
    conversations = [name.partition(".")[0] for name in asked.evidence]
    return Question(
        id=f"{person.talk.id}/{asked.id}",
        type=asked.type,
        text=asked.text,
        now=datetime.fromisoformat(asked.asked),
        gold_turns=frozenset(
            f"{conversation}/{name}"
            for conversation, name in zip(conversations, asked.evidence, strict=True)
        ),
        gold_sessions=frozenset(conversations),
        answer=asked.answer,
        unanswerable=not asked.evidence,
    )

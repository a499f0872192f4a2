"""Made-up conversations and questions for calibrating recall's floor, read from text files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.datasets.base import BadData
from language.transcripts import Role, Transcript, Turn

FOLDER = Path(__file__).parent
PALACES, OFF_TOPIC = FOLDER / "palaces.txt", FOLDER / "off_topic.txt"
APART = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Answerable:
    """A question and the messages that answer it, as `conversation/message`."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Person:
    """One palace, and what is asked of it.

    Attributes:
        now: When the questions are asked.
        near_misses: About things like those that were said, without an answer.
    """

    id: str
    now: datetime
    transcripts: tuple[Transcript, ...]
    answerable: tuple[Answerable, ...]
    near_misses: tuple[str, ...]


def read_people(path: Path = PALACES) -> list[Person]:
    """
    Raises:
        BadData: a line cannot be read, or a gold message is not there.
    """
    blocks: list[list[str]] = []
    for line in _lines(path):
        if line.startswith("= "):
            blocks.append([])
        elif not blocks:
            raise BadData(f"{path} does not begin with a palace: {line!r}.")
        blocks[-1].append(line)
    return [_person(block) for block in blocks]


def read_off_topic(path: Path = OFF_TOPIC) -> dict[str, str]:
    """Kinds by question."""
    kind, found = "", {}
    for line in _lines(path):
        if line.startswith("["):
            kind = line.strip("[]")
        else:
            found[line] = kind
    return found


def _lines(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def _person(block: Sequence[str]) -> Person:
    name, now = _named(block[0])
    transcripts = tuple(_transcripts(name, block))
    lines_asked = [line[2:] for line in block if line.startswith("? ")]
    return Person(
        id=name,
        now=now,
        transcripts=transcripts,
        answerable=tuple(_answerable(line, transcripts) for line in lines_asked),
        near_misses=tuple(line[2:] for line in block if line.startswith("~ ")),
    )


def _named(line: str) -> tuple[str, datetime]:
    try:
        name, moment = line[2:].split(" | ")
        return name.strip(), datetime.fromisoformat(moment).replace(tzinfo=UTC)
    except ValueError:
        raise BadData(f"{line!r} is not a name and a moment.") from None


def _transcripts(person: str, block: Sequence[str]) -> Iterator[Transcript]:
    sessions: list[list[str]] = []
    for line in block[1:]:
        if line.startswith("@ "):
            sessions.append([line])
        elif line[:2] not in ("? ", "~ "):
            sessions[-1].append(line)
    for heading, *said in sessions:
        title, began = _named(heading)
        turns = (_turn(at, line, began) for at, line in enumerate(said))
        yield Transcript("plain", f"{person}-{title}", title, tuple(turns))


def _turn(at: int, line: str, began: datetime) -> Turn:
    name, colon, text = line.partition(": ")
    if not colon:
        raise BadData(f"{line!r} does not say who speaks.")
    roles: dict[str, Role] = {"user": "user", "assistant": "assistant"}
    speaker = "" if name in roles else name
    return Turn(str(at), roles.get(name, "user"), text, began + at * APART, speaker)


def _answerable(line: str, transcripts: Sequence[Transcript]) -> Answerable:
    text, arrow, parts = line.partition(" => ")
    gold = {
        f"{each.external_id}/{turn.external_id}"
        for part in parts.split(" & ")
        for each in transcripts
        for turn in each.turns
        if part in turn.text
    }
    if not (arrow and gold):
        raise BadData(f"{line!r} names no message that was said.")
    return Answerable(text, frozenset(gold))

"""The corpus: invented people with dated conversations, questions and annotated facts.

`docs/corpus.md` describes the data and its limits. Each person is a folder in that of the
part, `train`, `dev` or `blind`:

`talk.txt`         who it is and what was said, in the form that `read_talk` reads
`questions.jsonl`  one `Asked` a line: a question and the messages that answer it
`facts.jsonl`      if annotated, one `Stated` a line: a fact, or words that only look like one
`second.jsonl`     of some, the same by another annotator, for a few of the conversations

As a data set, `locibench`, it is a palace for each of them.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from bench.datasets import BadData, Case, Dataset, Question
from language.transcripts import ROLES, Role, Transcript, Turn

CORPUS = Path(__file__).parent
PARTS = ("train", "dev", "blind")
KINDS = ("assistant", "friends", "work", "journal")
QUESTION_TYPES = (
    "single",
    "multi-hop",
    "time",
    "changed",
    "preference",
    "assistant",
    "list",
    "order",
    "as-of",
    "other-words",
    "unanswerable",
)
STANCES = ("", "for", "against", "mixed")
EVENTS = ("begins", "changes", "ends", "corrects", "denies", "none")
# Reasons why words that look like a fact are not one.
REASONS = (
    "hypothetical",
    "question",
    "joke",
    "sarcasm",
    "fiction",
    "quote",
    "somebody else",
    "tool talk",
    "wish",
    "general",
    "passing",
    "already known",
)
# Whose talk newcomers can load as the sample palace.
SAMPLE = CORPUS / "train" / "clara" / "talk.txt"
# Who a fact is about, if it is the palace's owner.
OWNER = "me"
APART = timedelta(minutes=1)

_PERSON = re.compile(r"= (?P<id>[a-z][a-z0-9_]*) \| (?P<languages>[a-z, ]+) \| (?P<manner>.+)")
_CONVERSATION = re.compile(
    r"@ (?P<id>[a-z0-9-]+) \| (?P<at>\S+) \| (?P<kind>\w+)(?: \| (?P<title>.+))?"
)
_PAUSE = re.compile(r"\+ (?:(?P<days>\d+)d)? ?(?:(?P<hours>\d+)h)? ?(?:(?P<minutes>\d+)m)?")
_SPEAKER = re.compile(r"(?P<name>[^\s:][^:]{0,40}): (?P<text>.*)|(?P<alone>[^\s:][^:]{0,40}):")
_Line = TypeVar("_Line", "Asked", "Stated")


class BadCorpus(BadData):
    """A file of the corpus is invalid; the message says which line and why."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What one person said and heard.

    Attributes:
        part: The name of the folder above.
        languages: ISO 639-1 codes, the main one first.
        manner: One line about who it is and how they write.
        kinds: The kind of each conversation, by its id.
        transcripts: In order of time; messages are named `c01.1`, counted from 1.
    """

    id: str
    part: str
    languages: tuple[str, ...]
    manner: str
    kinds: Mapping[str, str]
    transcripts: tuple[Transcript, ...]

    def turns(self) -> dict[str, Turn]:
        """The messages by their names."""
        return {turn.external_id: turn for each in self.transcripts for turn in each.turns}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to the palace.

    Attributes:
        asked: When; aware.
        evidence: The messages that answer it together; none if nothing does.
        as_of: The day that is asked about, if another than that of the question.
    """

    id: str
    type: str
    text: str
    asked: str
    answer: str
    evidence: tuple[str, ...] = ()
    as_of: str = ""


@dataclass(frozen=True, slots=True)
class Stated:
    """What a message says about something durable.

    Attributes:
        at: The message.
        words: The exact words, a part of the message.
        event: What happens to the fact; `none`: the words look like a fact and are none.
        subject: `me` for the palace's owner, else a name.
        predicate: As `language.facts.PREDICATES` lists them; another one in snake_case.
        value: The object in the message's own words, as short as possible.
        aspect: What a preference or an opinion is about, if it is not the value itself.
        stance: `for`, `against` or `mixed`, of opinions and preferences.
        since: The beginning of an ISO date: since when it is so, if said.
        until: Likewise, until when.
        closes: The ids of earlier facts that are not so any more by these words.
        why: With the event `none`, one of `REASONS`.
    """

    id: str
    at: str
    words: str
    event: str
    subject: str = ""
    predicate: str = ""
    value: str = ""
    aspect: str = ""
    stance: str = ""
    since: str = ""
    until: str = ""
    closes: tuple[str, ...] = ()
    why: str = ""

    @property
    def conversation(self) -> str:
        return self.at.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Person:
    """
    Attributes:
        second: What another annotator found in some of the conversations; each of these has a line.
    """

    talk: Talk
    questions: tuple[Asked, ...]
    facts: tuple[Stated, ...]
    second: tuple[Stated, ...] = ()


def read_people(part: Path) -> Iterator[Person]:
    """The people of a part of the corpus, by name.

    Raises:
        BadCorpus: a file is missing or not in its form.
    """
    try:
        for folder in sorted(path for path in part.iterdir() if path.is_dir()):
            talk = read_talk(folder / "talk.txt")
            questions = _read(folder / "questions.jsonl", Asked)
            facts, second = (_annotated(folder / f"{name}.jsonl") for name in ("facts", "second"))
            yield Person(talk, tuple(questions), tuple(facts), tuple(second))
    except OSError as error:
        raise BadCorpus(f"{part} is no part of the corpus: {error}.") from None


def _annotated(path: Path) -> list[Stated]:
    """The facts of a person; none of one who is not annotated yet, or not twice."""
    return _read(path, Stated) if path.exists() else []


def read_talk(path: Path) -> Talk:
    """A person's conversations.

    The first line is `= id | languages | manner`. `@ c01 | 2025-01-11T09:00+01:00 | kind |
    title` begins a conversation, `speaker: text` a message, a minute after the one before; `+ 2h`
    lets time pass. Lines that begin with two spaces, and empty ones between them, continue the
    message. `user` and `assistant` are roles; any other speaker is a name.

    Raises:
        BadCorpus: a line is none of these.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    head = _PERSON.fullmatch(lines[0])
    if not head:
        raise BadCorpus(f"{path}: the first line is not `= id | languages | manner`.")
    kinds: dict[str, str] = {}
    conversations: list[_Conversation] = []
    for number, line in enumerate(lines[1:], start=2):
        if heading := _CONVERSATION.fullmatch(line):
            kinds[heading["id"]] = heading["kind"]
            began = datetime.fromisoformat(heading["at"])
            conversations.append(_Conversation(heading["id"], heading["title"] or "", began))
        elif (line and not conversations) or not (not line or conversations[-1].take(line)):
            raise BadCorpus(f"{path}, line {number}: {line!r} is no line of a conversation.")
        elif conversations and not line:
            conversations[-1].take(line)
    return Talk(
        id=head["id"],
        part=path.parents[1].name,
        languages=tuple(head["languages"].replace(",", " ").split()),
        manner=head["manner"],
        kinds=kinds,
        transcripts=tuple(each.transcript() for each in conversations),
    )


class _Conversation:
    """The lines of one conversation."""

    def __init__(self, id_: str, title: str, began: datetime) -> None:
        self._id, self._title, self._now = id_, title, began - APART
        self._said: list[tuple[str, datetime, list[str]]] = []

    def take(self, line: str) -> bool:
        """Whether it belongs here."""
        if line.startswith("  ") or not line:
            if self._said:
                self._said[-1][2].append(line[2:])
            return bool(self._said) or not line
        if line.startswith("+ "):
            return self._wait(line)
        found = _SPEAKER.fullmatch(line)
        if found:
            self._now += APART
            name, text = found["name"] or found["alone"], found["text"]
            self._said.append((name, self._now, [] if text is None else [text]))
        return bool(found)

    def _wait(self, line: str) -> bool:
        pause = _PAUSE.fullmatch(line)
        if pause:
            parts = {unit: int(number) for unit, number in pause.groupdict(default="0").items()}
            self._now += timedelta(**parts)
        return bool(pause)

    def transcript(self) -> Transcript:
        turns = (self._turn(at, *said) for at, said in enumerate(self._said, start=1))
        return Transcript("corpus", self._id, self._title, tuple(turns))

    def _turn(self, at: int, name: str, said_at: datetime, lines: Sequence[str]) -> Turn:
        role: Role = next((role for role in ROLES if role == name), "user")
        speaker = "" if name == role else name
        text = "\n".join(lines).rstrip("\n")
        return Turn(f"{self._id}.{at}", role, text, said_at, speaker)


def plain_lines(talk: Talk) -> Iterator[str]:
    """A line a conversation with an assistant, in the plain format that Loci imports.

    Times are in UTC.
    """
    for each in talk.transcripts:
        messages = [
            {
                "role": turn.role,
                "text": turn.text,
                "said_at": f"{turn.said_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            }
            for turn in each.turns
        ]
        line = {"id": each.external_id, "title": each.title, "messages": messages}
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _read(path: Path, kind: type[_Line]) -> list[_Line]:
    """
    Raises:
        BadCorpus: a line is no JSON object with the fields of its kind.
    """
    found: list[_Line] = []
    known = {field.name for field in dataclasses.fields(kind)}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            fields: dict[str, Any] = json.loads(line)
            if unknown := fields.keys() - known:
                raise BadCorpus(f"{path}, line {number}: unknown field {sorted(unknown)[0]}.")
            lists = {name: tuple(v) for name, v in fields.items() if isinstance(v, list)}
            found.append(kind(**(fields | lists)))
        except (TypeError, ValueError, AttributeError) as error:
            raise BadCorpus(f"{path}, line {number}: {error}.") from None
    return found


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

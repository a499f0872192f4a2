"""The result type of all parsers: verbatim turns, and counts of what was skipped.

Jobs file from a spool, where each conversation is a line. Chats between people go on for years:
of these each day (UTC) is a conversation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from language.errors import BadImport
from language.storable import EMPTY, UNSTORABLE, digest, is_storable, storable_id, storable_label
from language.transcripts import ROLES, Role, Transcript, Turn

REPEATED = "appears twice in its conversation"
UNKNOWN_ROLE = "its role is none of those we know"
UNKNOWN_FORM = "is in a form we do not know"


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of an export.

    Attributes:
        transcript: The conversation as its source shows it; without turns if all were skipped.
        branches: Regenerated answers or edited questions: the turns that are not in
            `transcript`, each in exactly one branch.
        skipped: (reason, number) of messages that are in no transcript.
        left_out: (kind, number) of parts of messages without text, such as images.
    """

    transcript: Transcript
    skipped: tuple[tuple[str, int], ...] = ()
    branches: tuple[Transcript, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()

    @property
    def transcripts(self) -> tuple[Transcript, ...]:
        return (self.transcript, *self.branches)

    @property
    def turns(self) -> list[Turn]:
        return [turn for transcript in self.transcripts for turn in transcript.turns]

    @property
    def message_count(self) -> int:
        """Messages in the export: those kept and those skipped."""
        return len(self.turns) + sum(count for _, count in self.skipped)


class Gatherer:
    """Collects one conversation's turns, in order, and counts what is skipped."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.skipped: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self._texts: dict[str, str] = {}
        # Uses of each id, to number duplicates in constant time.
        self._given: dict[str, int] = {}

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1

    def leave_out(self, what: str) -> None:
        self.left_out[what] += 1

    def add(
        self,
        external_id: str,
        role: object,
        text: str,
        said_at: datetime,
        speaker: object = "",
        metadata: Mapping[str, Any] | None = None,
        only_for: str = "",
    ) -> None:
        """Add one message verbatim, or count it as skipped."""
        known_role = as_role(role)
        if known_role is None:
            self.skip(UNKNOWN_ROLE)
        elif not text.strip():
            self.skip(EMPTY)
        elif not is_storable(text):
            self.skip(UNSTORABLE)
        elif self._texts.get(external_id) == text:
            self.skip(REPEATED)
        else:
            name = self._free_id(external_id)
            self._texts[name] = text
            kept_with = storable_json(metadata) if metadata else None
            self.turns.append(
                Turn(name, known_role, text, said_at, label(speaker), kept_with, only_for)
            )

    def take_turns(self) -> tuple[Turn, ...]:
        """The turns since the last call: one transcript's."""
        turns = tuple(self.turns)
        self.turns.clear()
        return turns

    def conversation(
        self, transcript: Transcript, branches: tuple[Transcript, ...] = ()
    ) -> Conversation:
        return Conversation(
            transcript,
            skipped=tuple(sorted(self.skipped.items())),
            branches=branches,
            left_out=tuple(sorted(self.left_out.items())),
        )

    def _free_id(self, wanted: str) -> str:
        """A unique id: the second message under one id is always `<id>~2`."""
        name, count = wanted, self._given.get(wanted, 1)
        while name in self._texts:
            count += 1
            name = as_id(f"{wanted}~{count}")
        self._given[wanted] = count
        return name


def as_role(value: object) -> Role | None:
    return next((role for role in ROLES if role == value), None)


def as_id(value: object) -> str:
    """The value as an id that fits its column; empty if it is neither text nor a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return storable_id(str(value))


def derived_id(*parts: object) -> str:
    """An id for something without one at its source: the same parts give the same id."""
    return f"~{digest(repr(parts))}"


def branch_id(conversation_id: str, leaf_id: str) -> str:
    return as_id(f"{conversation_id}#{leaf_id}")


def label(value: object) -> str:
    """A title or a name that fits its column; empty if the value is not text."""
    return storable_label(value) if isinstance(value, str) else ""


def as_time(value: object) -> datetime | None:
    """Seconds since 1970 or an ISO 8601 text as an aware time in UTC; None for other values.

    A text without a zone is in UTC.
    """
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
        # Programs that do not know the time write zero.
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def storable_json(value: Any) -> Any:
    """The value with unstorable characters in its texts replaced; only metadata may change so."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, Mapping):
        return {storable_json(key): storable_json(inner) for key, inner in value.items()}
    return [storable_json(each) for each in value] if isinstance(value, list) else value


def settle_times(times: list[datetime | None], start: datetime) -> list[datetime]:
    """Replace missing times by the previous one; `start` comes before the first."""
    settled: list[datetime] = []
    for time in times:
        settled.append(time or (settled[-1] if settled else start))
    return settled


def as_mapping(value: object) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def conversation_object(
    item: Any, key: str, kind: type[list[Any]] | type[dict[str, Any]], number: int, name: str
) -> dict[str, Any]:
    """The item, a JSON object whose value of `key`, if any, is of this kind.

    Raises:
        BadImport: it is not. The file is from another program; importing the rest would lose the
            conversation without notice. Without the key a conversation is empty.
    """
    if not isinstance(item, dict):
        raise BadImport(f"Conversation {number} of {name} is not an object; nothing was imported.")
    value = item.get(key)
    if value is not None and not isinstance(value, kind):
        raise BadImport(
            f"Conversation {number} of {name} is not as expected: "
            f'its "{key}" is no {"list" if kind is list else "object"}; nothing was imported.'
        )
    return item


def conversation_to_line(conversation: Conversation) -> bytes:
    fields = {
        "transcripts": [_transcript_fields(each) for each in conversation.transcripts],
        "skipped": conversation.skipped,
        "left_out": conversation.left_out,
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def conversation_from_line(line: bytes) -> Conversation:
    """
    Raises:
        BadImport: `conversation_to_line` did not write the line, or not all of it.
    """
    try:
        fields = json.loads(line)
        first, *branches = [_transcript(each) for each in fields["transcripts"]]
        return Conversation(
            first,
            skipped=tuple((reason, count) for reason, count in fields["skipped"]),
            branches=tuple(branches),
            left_out=tuple((what, count) for what, count in fields["left_out"]),
        )
    except (ValueError, TypeError, LookupError) as error:
        raise BadImport("The prepared copy of the file is damaged; import it again.") from error


def _transcript_fields(transcript: Transcript) -> dict[str, Any]:
    return {
        "source": transcript.source,
        "id": transcript.external_id,
        "title": transcript.title,
        "agent": transcript.agent,
        "project": transcript.project,
        "turns": [
            (
                *(turn.external_id, turn.role, turn.text),
                *(turn.said_at.isoformat(), turn.speaker, turn.metadata, turn.only_for),
            )
            for turn in transcript.turns
        ],
    }


def _transcript(fields: dict[str, Any]) -> Transcript:
    turns = tuple(
        Turn(external_id, role, text, datetime.fromisoformat(said_at), speaker, *more)
        # Spools of earlier versions have no metadata, or no agent.
        for external_id, role, text, said_at, speaker, *more in fields["turns"]
    )
    return Transcript(
        *(fields["source"], fields["id"], fields["title"], turns, fields["agent"]),
        # Spools of earlier versions have no project.
        fields.get("project", ""),
    )


@dataclass(frozen=True, slots=True)
class Message:
    """
    Attributes:
        skipped: Why it is not kept; empty if it is.
        left_out: The kinds of its parts without words.
        role: By whom: people have "user".
    """

    external_id: str
    said_at: datetime
    speaker: str
    text: str
    metadata: Mapping[str, Any] | None = None
    skipped: str = ""
    left_out: tuple[str, ...] = ()
    role: Role = "user"


def days_of_chat(
    source: str, chat: str, title: str, messages: Iterable[Message]
) -> Iterator[Conversation]:
    """Yield each day when it is over, so that only one is in memory."""
    for day, of_day in groupby(messages, lambda message: message.said_at.date().isoformat()):
        gatherer = Gatherer()
        for message in of_day:
            _add(gatherer, message)
        name = label(f"{title}, {day}" if title else day)
        transcript = Transcript(source, as_id(f"{chat}/{day}"), name, gatherer.take_turns())
        yield gatherer.conversation(transcript)


def _add(gatherer: Gatherer, message: Message) -> None:
    for what in message.left_out:
        gatherer.leave_out(what)
    if message.skipped:
        gatherer.skip(message.skipped)
    else:
        gatherer.add(
            *(message.external_id, message.role, message.text),
            *(message.said_at, message.speaker, message.metadata),
        )

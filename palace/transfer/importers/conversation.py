"""The result type of all parsers: verbatim turns, and counts of what was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from language.storable import EMPTY, UNSTORABLE, digest, is_storable, storable_id, storable_label
from language.transcripts import ROLES, Role, Transcript, Turn

REPEATED = "appears twice in its conversation"
UNKNOWN_ROLE = "its role is none of those we know"
UNKNOWN_FORM = "is in a form we do not know"


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of an export.

    Attributes:
        transcript: The conversation as its source shows it; without turns if nothing could be kept.
        branches: Answers that were regenerated or questions that were edited: the turns that are
            not in `transcript`, each in exactly one branch.
        skipped: (reason, how many messages): messages that are in no transcript.
        left_out: (what, how many): pieces of messages that hold no text, such as images.
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
            self.turns.append(Turn(name, known_role, text, said_at, label(speaker), kept_with))

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
        """Two messages under one id are two messages: the second is always called `<id>~2`."""
        name, count = wanted, self._given.get(wanted, 1)
        while name in self._texts:
            count += 1
            name = as_id(f"{wanted}~{count}")
        self._given[wanted] = count
        return name


def as_role(value: object) -> Role | None:
    return next((role for role in ROLES if role == value), None)


def as_id(value: object) -> str:
    """The value as an id that fits its column; empty where it cannot serve as one."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return storable_id(str(value))


def derived_id(*parts: object) -> str:
    """An id for what has none at its source: always the same for the same parts."""
    return f"~{digest(repr(parts))}"


def branch_id(conversation_id: str, leaf_id: str) -> str:
    return as_id(f"{conversation_id}#{leaf_id}")


def label(value: object) -> str:
    """A title or a name, fit for a column; empty where the value is neither."""
    return storable_label(value) if isinstance(value, str) else ""


def as_time(value: object) -> datetime | None:
    """Seconds since 1970 or an ISO 8601 text as an aware time in UTC; None where it is neither.

    A text without a zone is taken as UTC.
    """
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
        # Zero is what programs write that do not know the time.
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def storable_json(value: Any) -> Any:
    """The value with all its texts made to fit into a column; what is beside a message may bend."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, Mapping):
        return {storable_json(key): storable_json(inner) for key, inner in value.items()}
    return [storable_json(each) for each in value] if isinstance(value, list) else value


def settle_times(times: list[datetime | None], start: datetime) -> list[datetime]:
    """Each time, or its predecessor's where there is none; `start` comes before the first."""
    settled: list[datetime] = []
    for time in times:
        settled.append(time or (settled[-1] if settled else start))
    return settled


def as_mapping(value: object) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one: what is missing reads like what is."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

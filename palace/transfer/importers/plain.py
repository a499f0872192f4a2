"""The plain format for all other sources: JSON Lines, one conversation each (docs/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Never

from language.errors import BadImport
from language.transcripts import Transcript
from palace.transfer.importers.conversation import (
    Conversation,
    Gatherer,
    as_id,
    as_time,
    label,
    settle_times,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import line_items

SOURCE = "plain"


def conversations(part: Part, latest: datetime, *, source: str = SOURCE) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for number, line in line_items(part):
        yield _Line(part.name, number, source).read(line, latest)


def _recognises(head: Head) -> bool:
    return isinstance(head.value, dict) and not head.is_listed and "messages" in head.value


FORMAT = Format(
    SOURCE,
    "plain JSON Lines",
    where="For everything else: a text file with one conversation a line, written as below.",
    becomes="each line",
    skips="roles that are not user, assistant, system or tool",
    recognises=_recognises,
    members=named(r".+\.jsonl"),
    conversations=conversations,
)


class _Line:
    """Reads one line strictly, because programs write this format, and errors should be noticed."""

    def __init__(self, name: str, number: int, source: str) -> None:
        self._source = source
        self._where = f"Line {number} of {name}"

    def read(self, line: Any, latest: datetime) -> Conversation:
        if not isinstance(line, dict):
            self._fail('is not an object like {"id": …, "messages": […]}')
        external_id = as_id(line.get("id"))
        if not external_id:
            self._fail('has no "id", a text that names the conversation')
        messages = line.get("messages")
        if not isinstance(messages, list):
            self._fail('has no list of "messages"')
        gatherer = Gatherer()
        times = [self._time(index, message) for index, message in enumerate(messages)]
        start = next((time for time in times if time), latest)
        for index, said_at in enumerate(settle_times(times, start)):
            self._add(gatherer, index, messages[index], said_at)
        transcript = Transcript(
            self._source,
            external_id,
            label(line.get("title")),
            gatherer.take_turns(),
            label(line.get("agent")),
        )
        return gatherer.conversation(transcript)

    def _time(self, index: int, message: Any) -> datetime | None:
        if not isinstance(message, dict):
            self._fail(f'has a message that is not an object like {{"role": …}} (number {index})')
        said_at = message.get("said_at")
        time = as_time(said_at)
        if said_at is not None and time is None:
            self._fail(
                f"has a message (number {index}) whose said_at is no ISO 8601 time "
                "such as 2025-03-09T18:30:00Z"
            )
        return time

    def _add(
        self, gatherer: Gatherer, index: int, message: dict[str, Any], said_at: datetime
    ) -> None:
        text = message.get("text")
        if not isinstance(text, str):
            self._fail(f'has a message (number {index}) without a "text"')
        external_id = as_id(message.get("id")) or str(index)
        gatherer.add(external_id, message.get("role"), text, said_at, message.get("speaker"))

    def _fail(self, what: str) -> Never:
        raise BadImport(f"{self._where} {what}; nothing was imported.")
